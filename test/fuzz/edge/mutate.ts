const SPICE = [
  '\r\n',
  '\n',
  '\r',
  '\0',
  ' ',
  '\t',
  ';',
  ',',
  ':',
  '<',
  '>',
  '"',
  '\\',
  '%',
  '@',
  '[',
  ']',
  '=',
  '?',
  '/',
  '(',
  ')',
  '%00',
  '\r\n ',
  '\r\n\r\n',
  'SIP/2.0',
  'Via: ',
  'v:',
  'Content-Length: 99999999999999999999',
  'l:-1',
  ';branch=z9hG4bK',
  ';tag=',
  ';rport',
  'CSeq: 4294967296 ACK',
  '\xff\xfe',
  '\xc3\x28',
  '::::',
  '[::1',
  'sip:',
  'tel:',
  '"'.repeat(7),
  ';'.repeat(40),
  '('.repeat(30),
  'CANCEL',
  'ACK',
  'BYE',
  'INVITE',
  'PRACK',
  'To: <sip:x@y>;tag=z',
]

/** Returns a changed copy of a message: bytes replaced, cut, repeated or inserted, lines swapped, messages spliced. */
export function mutate(text: string, others: readonly string[], random: () => number): string {
  let out = text
  const rounds = 1 + Math.floor(random() * random() * 4)
  for (let i = 0; i < rounds; i++) out = mutateOnce(out, others, random)
  return out.length > 70_000 ? out.slice(0, 70_000) : out
}

function mutateOnce(text: string, others: readonly string[], random: () => number): string {
  const at = Math.floor(random() * (text.length + 1))
  const size = 1 + Math.floor(random() * random() * 64)
  switch (Math.floor(random() * 10)) {
    case 0:
      return text.slice(0, at) + String.fromCharCode(Math.floor(random() * 256)) + text.slice(at + 1)
    case 1:
      return text.slice(0, at) + text.slice(at + size)
    case 2:
      return text.slice(0, at) + text.slice(at, at + size).repeat(2 + Math.floor(random() * 5)) + text.slice(at + size)
    case 3:
    case 4:
      return text.slice(0, at) + (SPICE[Math.floor(random() * SPICE.length)] ?? '') + text.slice(at)
    case 5: {
      const lines = text.split('\r\n')
      const a = Math.floor(random() * lines.length)
      const b = Math.floor(random() * lines.length)
      const moved = lines[a] ?? ''
      lines[a] = lines[b] ?? ''
      lines[b] = moved
      return lines.join('\r\n')
    }
    case 6: {
      const lines = text.split('\r\n')
      lines.splice(Math.floor(random() * lines.length), 1)
      return lines.join('\r\n')
    }
    case 7: {
      const other = others[Math.floor(random() * others.length)] ?? ''
      return text.slice(0, at) + other.slice(Math.floor(random() * other.length))
    }
    case 8:
      return text.slice(0, at)
    default:
      return text.replace(/\d+/g, digits => (random() < 0.1 ? String(Math.floor(random() * 2 ** 40)) : digits))
  }
}
