/** What the speech engines know, for warnings about voices and languages that nobody speaks (voice-compat.md §10). */

/**
 * Voices that espeak-ng stands in for: it has one engine with variants, and takes a woman's or a man's by the name.
 * `*` is any rest.
 */
export const ESPEAK_VOICES: readonly string[] = ['man', 'woman', 'alice', 'Polly.*', 'Google.*']

/** Languages of espeak-ng 1.51 by their first part in BCP 47; `zh` and `no` are told under other names there. */
export const ESPEAK_LANGUAGES: readonly string[] = (
  'af am an ar as az ba be bg bn bs ca cmn cs cy da de el en eo es et eu fa fi fr ga gd gn grc gu haw he hi hr ht hu ' +
  'hy ia id io is it ja ka kk kl kn ko kok ku ky la lb lt lv mi mk ml mr ms mt my nb nci ne nl no nog om or pa pap pl ' +
  'pt qu ro ru sd shn si sk sl smj sq sr sv sw ta te th tk tn tr tt ug uk ur uz vi yue zh'
).split(' ')
