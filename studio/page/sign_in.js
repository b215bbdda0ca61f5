// The form for the token, where the server asks for one.

import {el, fill} from "./dom.js";

/** The form; `done` is called once the server took the token. The token goes nowhere but to the server. */
export function signInForm(source, done) {
  const input = el("input", { type: "password", id: "token", name: "token", autocomplete: "current-password", required: true, "aria-describedby": "token-told" });
  const told = el("p", { id: "token-told", class: "told", role: "alert" });
  const form = el("form", { class: "sign-in" }, el("h2", null, "Sign in"), el("p", null, "This studio asks for its token. ", el("code", null, "incarnate studio"), " printed it when it began, or was given it as ", el("code", null, "--token"), "."), el("label", { for: "token" }, "Token"), input, el("button", { type: "submit", class: "primary" }, "Sign in"), told);
  form.addEventListener("submit", async (sent) => {
    sent.preventDefault();
    fill(told);
    try {
      await source.signIn(input.value.trim()); // it is pasted with whatever stood around it
      done();
    } catch (error) {
      fill(told, error.status === 401 ? "That is not the token." : error.message);
      input.select();
    }
  });
  return el("div", { class: "sign-in-place" }, form);
}
