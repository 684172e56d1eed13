/**
 * Readers of one header in the text of a message as it was on the wire, for observers, which have no parsed message.
 * `names` are the header's name and its compact form. Values are unfolded (RFC 3261 §7.3.1).
 */

const patternOf = (names: readonly string[], flags: string): RegExp =>
  new RegExp(`^(?:${names.join('|')})[ \\t]*:(.*(?:\\r?\\n[ \\t].*)*)`, flags)

const unfolded = (value = ''): string => value.replace(/\s*\r?\n\s+/g, ' ').trim()

/** Returns the reader of the first value; null without one. */
export function fieldReader(...names: readonly string[]): (text: string) => string | null {
  const pattern = patternOf(names, 'im')
  return text => {
    const match = pattern.exec(text)
    return match && unfolded(match[1])
  }
}

/** Returns the reader of all values, one for each line of the header. */
export function fieldsReader(...names: readonly string[]): (text: string) => string[] {
  const pattern = patternOf(names, 'gim')
  return text => [...text.matchAll(pattern)].map(match => unfolded(match[1]))
}
