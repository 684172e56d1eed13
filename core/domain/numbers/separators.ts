// The visual separators of RFC 3966 §5.1.1, spaces, and what contact lists and word processors put into a number that
// is copied from them: dashes that look like the hyphen, spaces without width, and marks of the direction of writing.
const SEPARATORS = /[\s().\-/\u00a0\u2010-\u2015\u2212\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069]/g

/** Removes visual separators from a telephone number. */
export const withoutSeparators = (text: string): string => text.replace(SEPARATORS, '')
