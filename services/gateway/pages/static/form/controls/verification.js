// Signers prove who they are at an identity provider: they go there and come back to this field.
import { post, Refused, Unreachable } from "../server/calls.js";
import { announce, button, el } from "../dom.js";
import { t } from "../texts.js";

/** Why the last attempt came to nothing, as a sentence; "" when there was none. */
export function lastProblem(field, form) {
  const problem = field.verification_problem;
  return problem ? t(`verification.problem.${problem}`, { provider: form.identity_provider ?? "" }) : "";
}

export function verification(field, context) {
  const { form } = context.state;
  const provider = form.identity_provider;
  const node = el("div", { class: "verification", role: "group", "aria-describedby": context.describedBy });
  const first = content();
  return { node, labels: node, focus: () => first.focus() };

  function content() {
    if (context.value) return verified();
    if (!provider) return showText(t("verification.gone"));
    if (window.self !== window.top) return ownWindow();
    const go = button(t("verification.button", { provider }), leave, "button--main verification__go");
    node.append(el("p", { class: "verification__intro" }, t("verification.intro", { provider })), go);
    return go;
  }

  function verified() {
    const words = field.verified_as ? t("verification.done_as", { name: field.verified_as }) : t("verification.done");
    const shown = showText(`✓ ${words}`);
    shown.classList.add("verification__done");
    return shown;
  }

  function showText(text) {
    const shown = el("p", { class: "verification__said", tabindex: -1 }, text);
    node.append(shown);
    return shown;
  }

  /** In a frame of another page no provider lets itself be shown. */
  function ownWindow() {
    const link = el(
      "a",
      { class: "button button--main verification__go", href: `${location.pathname}#field=${field.uuid}`, target: "_blank", rel: "noopener" },
      t("verification.button", { provider }),
    );
    node.append(el("p", { class: "verification__intro" }, t("verification.framed")), link);
    return link;
  }

  async function leave() {
    context.onProblem("");
    context.onBusy(true);
    try {
      if (!(await context.beforeLeaving())) return context.onProblem(t("verification.unsaved"));
      const { url } = await post("identity", { field: field.uuid });
      announce(t("verification.going", { provider }));
      location.assign(url);
    } catch (error) {
      if (!(error instanceof Refused) && !(error instanceof Unreachable)) throw error;
      if (error instanceof Refused && error.formChanged) return location.reload();
      const tooMany = error.details.some((detail) => detail.retry_after);
      const unreachable = tooMany ? t("verification.too_many") : t("verification.problem.unreachable", { provider });
      context.onProblem((error instanceof Refused && error.message) || unreachable);
    } finally {
      context.onBusy(false);
    }
  }
}
