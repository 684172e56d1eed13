import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A message of fixtures/sip/torture with the answer that its sender must get (see the README there). */
interface TortureMessage {
  readonly name: string
  readonly expected: number | 'silent'
  readonly remark: string
  readonly bytes: Buffer
}

export function tortureMessages(file: 'rfc4475.txt' | 'rfc5118.txt'): TortureMessage[] {
  const text = readFileSync(join(process.cwd(), 'fixtures/sip/torture', file), 'latin1')
  return text
    .split(/^(?==== )/m)
    .filter(part => part.startsWith('=== '))
    .map(part => {
      const end = part.indexOf('\n')
      const [name = '', expected = '', remark = ''] = part.slice(4, end).split(' | ')
      return {
        name,
        expected: expected === 'silent' ? 'silent' : Number(expected),
        remark,
        bytes: wireForm(part.slice(end + 1)),
      }
    })
}

function wireForm(text: string): Buffer {
  const plain = text
    .replaceAll(/<repeat (\d+)>(.*?)<\/repeat>/g, (_all, count: string, what: string) => what.repeat(Number(count)))
    .replaceAll('\n', '\r\n')
    .replaceAll(/<hex>([0-9a-f]*)<\/hex>/g, (_all, hex: string) => Buffer.from(hex, 'hex').toString('latin1'))
  const body = plain.slice(plain.indexOf('\r\n\r\n') + 4)
  return Buffer.from(plain.replace('{length}', String(body.length)), 'latin1')
}
