/**
 * Characters that no name, address or label may have: control characters, line and paragraph separators, bidirectional
 * controls (Unicode Standard Annex 9), characters that nobody sees, which make one name look like another, and lone
 * surrogates, which UTF-8 cannot encode. The inside of a character class.
 */
export const DECEIVING =
  '\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180e\\u200b\\u200e\\u200f' +
  '\\u2028-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ud800-\\udfff\\ufeff\\uffa0\\ufff9-\\ufffb'

/**
 * A joiner that joins nothing: U+200C and U+200D have a meaning after a letter of some scripts and between emoji, and
 * after ASCII or at the beginning they only hide (RFC 5892, appendix A, has the rules for host names).
 */
export const STRAY_JOINER = '(?:^|[\\u0000-\\u007f])[\\u200c\\u200d]'

// Texts of lines keep their line ends and tabs. A pair of surrogates is a character, which the flag `u` keeps whole.
const UNSEEN = new RegExp(`(?!\\r?\\n|\\t)[${DECEIVING}]|(?<=^|[\\u0000-\\u007f])[\\u200c\\u200d]`, 'gu')

/** Shows characters of a text of lines that deceive as `\u001b`, so that no terminal or page obeys them. */
export const visible = (text: string): string =>
  text.replace(UNSEEN, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** Shows a value on one line. */
export const oneLine = (text: string): string => visible(text.replace(/\r?\n|[\t\u2028\u2029]/g, ' '))
