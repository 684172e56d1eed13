/** Names of people in SIP headers that we write. */

const MAX_NAME_LENGTH = 128

/**
 * Returns `"name" ` for the front of an address: a quoted string (RFC 3261 §25.1) with UTF-8 as it came, quotes and
 * backslashes escaped, control characters replaced. Returns '' for an empty name.
 */
export function quotedName(name: string | null): string {
  const plain = (name ?? '').replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ').trim()
  if (plain === '') return ''
  // Counts code points, so that no character is cut in half.
  const whole = plain.length <= MAX_NAME_LENGTH ? plain : [...plain].slice(0, MAX_NAME_LENGTH).join('')
  return `"${whole.replace(/["\\]/g, '\\$&')}" `
}
