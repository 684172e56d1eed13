/**
 * Characters that no name, address or label may have: control characters, line and paragraph separators, bidirectional
 * controls (Unicode Standard Annex 9), which make one name look like another, and lone surrogates, which UTF-8 cannot
 * encode. The inside of a character class.
 */
export const DECEIVING =
  '\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff'

const CONTROLS = /(?!\r?\n|\t)[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/** Shows control characters of a text of lines as `\u001b`, so that a terminal does not obey them. */
export const visible = (text: string): string =>
  text.replace(CONTROLS, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** Shows a value on one line. */
export const oneLine = (text: string): string => visible(text.replace(/\r?\n|[\t\u2028\u2029]/g, ' '))
