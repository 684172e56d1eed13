/**
 * Readers of one header in the text of a message as it was on the wire, for observers, which have no parsed message.
 * `names` are the header's name and its compact form, in lower case. Values are unfolded (RFC 3261 §7.3.1). Each reader
 * passes once over the head, whatever a peer has put into it.
 */

/** Returns the reader of the first value; null without one. */
export function fieldReader(...names: readonly string[]): (text: string) => string | null {
  return text => find(text, names, 0)?.value ?? null
}

/** Returns the reader of all values, one for each line of the header. */
export function fieldsReader(...names: readonly string[]): (text: string) => string[] {
  return text => {
    const values: string[] = []
    for (let found = find(text, names, 0); found; found = find(text, names, found.next)) values.push(found.value)
    return values
  }
}

function find(text: string, names: readonly string[], from: number): { value: string; next: number } | null {
  for (let at = from; at < text.length; at = endOf(text, at) + 1) {
    // An empty line ends the head.
    if (at > 0 && isEmpty(text, at)) return null
    const value_at = valueAt(text, at, names)
    if (value_at < 0) continue
    let end = endOf(text, at)
    while (isBlank(text.charCodeAt(end + 1))) end = endOf(text, end + 1)
    return { value: unfolded(text.slice(value_at, end)), next: end + 1 }
  }
  return null
}

/** Returns the position of the value when the line has one of these names, else -1. */
function valueAt(text: string, at: number, names: readonly string[]): number {
  for (const name of names) {
    if ((text.charCodeAt(at) | 32) !== name.charCodeAt(0)) continue
    let colon = at + name.length
    while (isBlank(text.charCodeAt(colon))) colon++
    if (text.charCodeAt(colon) === 58 && text.slice(at, at + name.length).toLowerCase() === name) return colon + 1
  }
  return -1
}

function endOf(text: string, at: number): number {
  const end = text.indexOf('\n', at)
  return end < 0 ? text.length : end
}

const isEmpty = (text: string, at: number): boolean =>
  text.charCodeAt(at) === 10 || (text.charCodeAt(at) === 13 && text.charCodeAt(at + 1) === 10)

const isBlank = (c: number): boolean => c === 32 || c === 9

const unfolded = (value: string): string =>
  value.includes('\n')
    ? value
        .split('\n')
        .map(line => line.trim())
        .filter(line => line !== '')
        .join(' ')
    : value.trim()
