/** The mask for secrets of the ladder, and one as octets that are also characters. */
const MASK = '…'
const OCTETS = '***'
const SDES_KEY = /^(a=crypto:\d+ (\S+) )inline:…/gim

/**
 * Returns a message of the ladder as octets (each a character of Latin-1), for readers that parse it again: the mask in
 * ASCII, and the Content-Length that of the body which is left. `keyOf` returns what stands for a masked SRTP key.
 */
export function inOctets(shown: string, keyOf: (suite: string) => string = () => OCTETS): string {
  if (!shown.includes(MASK)) return shown
  const text = shown
    .replace(SDES_KEY, (_, head: string, suite: string) => `${head}inline:${keyOf(suite)}`)
    .replaceAll(MASK, OCTETS)
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return text
  const body = text.slice(end + 4)
  const head = text.slice(0, end).replace(/^(content-length|l)([ \t]*:[ \t]*)\d+/im, `$1$2${body.length}`)
  return `${head}\r\n\r\n${body}`
}
