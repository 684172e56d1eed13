const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** A document that speaks a text, so many times over. */
export const spoken = (text: string, times = 1): string =>
  `<Response><Say${times === 1 ? '' : ` loop="${times}"`}>${escaped(text)}</Say></Response>`
