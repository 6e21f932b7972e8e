// The initials of a name, as they are proposed to whoever has it. They can always be changed: a name does not say all of itself.

const TITLE = /^[^.]{2,}\.$/; // Dr., Prof., but not J.
const AFTER = /^(?:jr|sr|i{2,3}|iv|md|phd)\.?$/i;
const MOST = 6;
const CASED = /[\p{Lu}\p{Ll}\p{Lt}]/u;
const JOINED = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u30fc]+$/u;
const FAMILIES_OF_TWO = /^(?:欧阳|歐陽|司马|司馬|诸葛|諸葛|上官|慕容|夏侯|令狐|皇甫|尉迟|尉遲|端木|公孙|公孫|남궁|황보|제갈|사공|선우|서문|독고|동방)/u;
const BEFORE_CONSONANTS = /^[\u0e40-\u0e44\u0ec0-\u0ec4]/u; // vowels that Thai and Lao write first

/** `Jane van Doe` gives `JvD`, `田中 さくら` `田中`, `محمد علي` `م. ع.`: in the language of the page where the name alone does not tell. */
export function initials(name, language = "") {
  const words = wordsOf(name);
  if (!words.length) return "";
  if (JOINED.test(words[0])) return familyName(words, language);
  const parts = words.flatMap((word) => word.split(/[-‐‑・·]/u)).filter(Boolean).slice(0, MOST);
  if (!CASED.test(name)) return uncased(parts);
  const isPlain = !/\p{Lu}/u.test(name); // typed in small letters throughout
  return parts.map((word) => cased(word, isPlain, language)).join("");
}

/** Without titles, what follows a comma, and what is in brackets. `Doe, Jane` is Jane Doe. */
function wordsOf(name) {
  let [first, second = ""] = name.replace(/[([{][^)\]}]*[)\]}]?/gu, " ").split(/[,،、]/u);
  if (second.trim() && !/\s/u.test(first.trim())) first = `${second} ${first}`;
  const words = first.split(/\s+/u).filter((word) => /\p{L}/u.test(word));
  const named = words.filter((word) => !TITLE.test(word));
  const kept = named.length ? named : words;
  return kept.length > 2 && AFTER.test(kept.at(-1)) ? kept.slice(0, -1) : kept;
}

/** A small letter stays small: `van`, `de`, `d'`. */
function cased(word, isPlain, language) {
  const [, particle, rest] = /^(\p{Ll})['’](\p{Lu}.*)/u.exec(word) ?? [null, "", word];
  const letters = rest.replace(/^[^\p{L}]+/u, "");
  const letter = /^IJ/.test(letters) ? "IJ" : graphemes(letters)[0] ?? "";
  return particle + (isPlain ? letter.toLocaleUpperCase(language || undefined) : letter);
}

/** Scripts without capitals put a full stop after each; those whose letters join, a space as well. */
function uncased(words) {
  const letters = words.map((word) => graphemes(word.replace(BEFORE_CONSONANTS, ""))[0] ?? "");
  const between = /[\p{Script=Hebrew}\p{Script=Thai}\p{Script=Lao}]/u.test(letters[0]) ? "" : " ";
  return letters.map((letter) => `${letter}.`).join(between);
}

/** Chinese, Japanese, Korean: the family name, which comes first, is what stands for the whole. */
function familyName([first, ...others], language) {
  if (others.length) return first.length <= 4 ? first : graphemes(first)[0];
  const [two] = FAMILIES_OF_TWO.exec(first) ?? [];
  if (two) return two;
  const [characters = ""] = /^\p{Script=Han}+/u.exec(first) ?? [];
  const isJapanese = /[\p{Script=Hiragana}\p{Script=Katakana}]/u.test(first);
  if (isJapanese && characters) return characters.slice(0, 3);
  if (language.startsWith("ja") && first.length > 2) return first.slice(0, 2);
  return graphemes(first)[0];
}

function graphemes(text) {
  if (!Intl.Segmenter) return [...text];
  return [...new Intl.Segmenter().segment(text)].map(({ segment }) => segment);
}
