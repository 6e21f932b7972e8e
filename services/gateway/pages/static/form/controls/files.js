// Fields that take a picture or files. They are sent as soon as they are chosen.
import { newRequestId, page, persistently, Refused, sendFile } from "../server/calls.js";
import { announce, button, el } from "../dom.js";
import { t } from "../texts.js";

export const PICTURE_TYPES = "image/png,image/jpeg,image/webp,image/gif";
const WAITS = [1_000, 3_000];

export function image(field, context) {
  const shown = el("div", { class: "preview" });
  // What a browser cannot show itself is shown as it came back, as a JPEG.
  const input = fileInput(context, { accept: `${PICTURE_TYPES},image/heic,image/heif,image/avif` });
  const show = () => {
    const attachment = context.state.attachments.get(context.state.value(field.uuid));
    shown.replaceChildren(...(attachment ? [el("img", { class: "preview__picture", src: attachment.url, alt: t("image.yours") })] : []));
  };
  input.addEventListener("change", async () => {
    const [attachment] = await sendAll([...input.files].slice(0, 1), "image", context);
    if (attachment) context.onInput(context.state.addAttachment(attachment));
    show();
  });
  show();
  return { node: el("div", {}, input, shown), labels: input, focus: () => input.focus(), hint: t("image.add", megabytes(context)) };
}

export function file(field, context) {
  const list = el("ul", { class: "files" });
  const input = fileInput(context, { multiple: true });
  const uuids = () => context.state.value(field.uuid) ?? [];
  const show = () => {
    list.replaceChildren(...uuids().map((uuid) => entry(uuid, context.state.attachments.get(uuid)?.filename ?? "")));
  };
  const entry = (uuid, filename) => {
    const remove = button(t("file.remove"), () => {
      context.onInput(uuids().filter((other) => other !== uuid));
      announce(t("file.removed", { name: filename }));
      show();
      input.focus();
    }, "button--small");
    remove.append(el("span", { class: "visually-hidden" }, ` ${filename}`));
    return el("li", { class: "files__item" }, el("span", { class: "files__name" }, filename), remove);
  };
  input.addEventListener("change", async () => {
    const sent = await sendAll([...input.files], "file", context);
    context.onInput([...uuids(), ...sent.map((attachment) => context.state.addAttachment(attachment))]);
    input.value = "";
    show();
  });
  show();
  return { node: el("div", {}, input, list), labels: input, focus: () => input.focus(), hint: t("file.add", megabytes(context)) };
}

/** Sends one picture or file; throws an Error with a sentence for the signer. */
export async function send(file, filename, type, context) {
  const limit = context.state.form.max_file_size;
  if (file.size > limit) throw new Error(t("problem.size", { name: filename, ...megabytes(context) }));
  const requestId = newRequestId();
  try {
    return await persistently(() => sendFile(file, filename, type, requestId), WAITS);
  } catch (error) {
    const unsent = type === "signature" || type === "initials" ? "problem.signature_sent" : "problem.upload";
    if (!(error instanceof Refused)) throw new Error(t(unsent), { cause: error });
    if (error.formEnded) page.onEnded(error.state);
    const useless = error.status === 422 || error.status === 415;
    const text = useless && type !== "file" ? t("problem.picture", { name: filename }) : error.message || t(unsent);
    throw new Error(text, { cause: error });
  }
}

async function sendAll(files, type, context) {
  const sent = [];
  context.onBusy(true);
  try {
    for (const file of files) {
      announce(t("file.sending", { name: file.name }));
      sent.push(await send(file, file.name, type, context));
      announce(t("file.added", { name: file.name }));
    }
    context.onProblem("");
  } catch (error) {
    context.onProblem(error.message);
  } finally {
    context.onBusy(false);
  }
  return sent;
}

function fileInput({ id, describedBy }, properties) {
  return el("input", { type: "file", id, class: "input input--file", "aria-describedby": describedBy, ...properties });
}

const megabytes = (context) => ({ megabytes: Math.floor(context.state.form.max_file_size / 2 ** 20) });
