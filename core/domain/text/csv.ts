// Spreadsheets take a cell that begins so for a formula, which may send their data to somebody (OWASP, CSV injection).
// They do the same for the full-width signs, and behind characters that are not shown.
export const FORMULA = /^['\u00ad\u200b-\u200f\u2060\ufeff]*[=+\-@\t\r\n\uff0b\uff0d\uff1d\uff20]/

const NOT_PLAIN = new RegExp(`${FORMULA.source}|[",\\r\\n]`)

/** Writes a text as a CSV cell: quoted where needed (RFC 4180 §2), and never a formula. `readCell` reads it back. */
export function csvCell(text: string): string {
  if (!NOT_PLAIN.test(text)) return text
  const plain = FORMULA.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain
}

/** Reads the text of a parsed CSV cell. A formula that others wrote into a list is text too. */
export const readCell = (cell: string): string => (cell.startsWith("'") && FORMULA.test(cell) ? cell.slice(1) : cell)
