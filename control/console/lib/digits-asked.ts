/** Returns the query of a list of numbers that begin so; none while the text is no beginning of a number. */
export const digitsAsked = (text: string): { readonly prefix?: string } =>
  /^\+?\d{1,15}$/.test(text) ? { prefix: text } : {}
