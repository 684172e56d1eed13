/** Fewest characters of a line after its indent: narrower columns read worse than lines that a terminal breaks. */
const LEAST = 20

/**
 * Breaks lines that are longer than `width` at blanks. What continues a line is indented as far as it is, and two more.
 * A word that is longer, such as an address to be copied, stays whole.
 */
export const fitted = (text: string, width: number): string =>
  text
    .split('\n')
    .flatMap(line => (line.length <= width ? [line] : broken(line, width)))
    .join('\n')

function broken(line: string, width: number): string[] {
  const own = /^ */.exec(line)?.[0] ?? ''
  const indent = own.length + 2 + LEAST > width ? '' : `${own}  `
  const lines: string[] = []
  let now = own
  for (const word of line.trim().split(/ +/)) {
    const blank = now.trim() === ''
    if (!blank && now.length + 1 + word.length > width) {
      lines.push(now)
      now = indent + word
    } else now += blank ? word : ` ${word}`
  }
  return [...lines, now]
}
