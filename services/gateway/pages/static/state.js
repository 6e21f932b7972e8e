// Pages that say one thing: not your turn, expired, withdrawn, declined. When that is so no more, the page shows what is.
import "./form/embedding.js";
import "./times.js";
import { Watch } from "./form/live/watch.js";

const { state } = document.querySelector("[data-state]").dataset;
const show = () => location.reload();

new Watch({ onNews: (told) => told.state !== state && show(), onGone: show });
