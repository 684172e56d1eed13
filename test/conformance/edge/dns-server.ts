import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import type { Test } from '../../support/harness/index.ts'

// A name server for the tests (RFC 1035). A test sets each answer: records, a refusal or silence.

type Record =
  | { readonly type: 'A'; readonly ttl: number; readonly address: string }
  | {
      readonly type: 'SRV'
      readonly ttl: number
      readonly priority: number
      readonly weight: number
      readonly port: number
      readonly target: string
    }
  | { readonly type: 'NAPTR'; readonly ttl: number; readonly service: string; readonly replacement: string }

/** An answer: records (`[]` for none of this type), no such name, a refusal, or silence. */
type Said = readonly Record[] | 'NXDOMAIN' | 'REFUSED' | 'silent'

interface DnsServer {
  /** Its address, for `new Resolver().setServers`. */
  readonly at: string
  /** Questions so far, such as `SRV _sip._udp.example.test`. */
  readonly asked: string[]
  say(type: string, name: string, said: Said): void
  /** Overrides every answer, to simulate a server that is dead or refuses. */
  all: Said | undefined
}

const TYPES = new Map([
  [1, 'A'],
  [28, 'AAAA'],
  [33, 'SRV'],
  [35, 'NAPTR'],
])
const CODES = { NXDOMAIN: 3, REFUSED: 5 } as const

export async function dnsServer(t: Test): Promise<DnsServer> {
  const socket: Socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  t.teardown(() => socket.close())
  const zone = new Map<string, Said>()
  const known = new Set<string>()
  const server: DnsServer = {
    at: `127.0.0.1:${socket.address().port}`,
    asked: [],
    say: (type, name, said) => zone.set(`${type} ${name}`, said),
    all: undefined,
  }
  socket.on('message', (query, from) => {
    const end = query.indexOf(0, 12) + 5
    const type = query.readUInt16BE(end - 4)
    const question = `${TYPES.get(type) ?? type} ${readName(query, 12)}`
    // A resolver retransmits an unanswered query with the same id. Count it once.
    const asking = `${from.port} ${query.readUInt16BE(0)} ${question}`
    if (!known.has(asking)) server.asked.push(question)
    known.add(asking)
    const said = server.all ?? zone.get(question) ?? 'NXDOMAIN'
    if (said === 'silent') return
    const records = typeof said === 'string' ? [] : said
    const header = Buffer.alloc(12)
    query.copy(header, 0, 0, 2)
    // QR, AA, RD, RA, and the code.
    header.writeUInt16BE(0x8580 | (typeof said === 'string' ? CODES[said] : 0), 2)
    header.writeUInt16BE(1, 4)
    header.writeUInt16BE(records.length, 6)
    const answers = records.map(record => {
      const data = dataOf(record)
      // 0xc00c points to the name of the question.
      const head = Buffer.from([0xc0, 0x0c, 0, type, 0, 1, 0, 0, 0, 0, 0, 0])
      head.writeUInt32BE(record.ttl, 6)
      head.writeUInt16BE(data.length, 10)
      return Buffer.concat([head, data])
    })
    socket.send(Buffer.concat([header, query.subarray(12, end), ...answers]), from.port, from.address)
  })
  return server
}

function dataOf(record: Record): Buffer {
  if (record.type === 'A') return Buffer.from(record.address.split('.').map(Number))
  if (record.type === 'SRV') {
    const head = Buffer.alloc(6)
    for (const [i, n] of [record.priority, record.weight, record.port].entries()) head.writeUInt16BE(n, i * 2)
    return Buffer.concat([head, writeName(record.target)])
  }
  const text = (value: string): Buffer => Buffer.concat([Buffer.from([value.length]), Buffer.from(value)])
  // Order 10, preference 1.
  const head = Buffer.from([0, 10, 0, 1])
  return Buffer.concat([head, text('s'), text(record.service), text(''), writeName(record.replacement)])
}

const writeName = (name: string): Buffer =>
  Buffer.concat([
    ...name.split('.').map(label => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)])),
    Buffer.from([0]),
  ])

function readName(query: Buffer, at: number): string {
  const labels: string[] = []
  for (let i = at; query[i]; i += 1 + (query[i] ?? 0))
    labels.push(query.toString('latin1', i + 1, i + 1 + (query[i] ?? 0)))
  return labels.join('.').toLowerCase()
}
