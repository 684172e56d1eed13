import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from './harness/index.ts'
import { PATIENCE_MS } from './wait.ts'

/**
 * The corpus of fixtures/sip/world (format: its README), and a peer and a target that send its messages as they stand,
 * on raw sockets: a SIP stack of ours would mend what the devices get wrong.
 */

export interface WorldCase {
  readonly name: string
  /** The lines above the message, by their name; repeated ones in order. */
  readonly facts: ReadonlyMap<string, readonly string[]>
  readonly start: string
  /** Header lines as they stand, with their folds. */
  readonly headers: readonly string[]
  readonly body: string
}

const FOLDER = join(process.cwd(), 'fixtures/sip/world')

export const worldCases = (): WorldCase[] =>
  readdirSync(FOLDER)
    .filter(file => file.endsWith('.txt'))
    .sort()
    .map(file => parseCase(file.slice(0, -4), readFileSync(join(FOLDER, file), 'latin1')))

const KNOWN = new Set([
  ...['device', 'odd', 'right', 'ways', 'status', 'warning', 'called', 'caller', 'name', 'target', 'target-lacks'],
  ...['answered', 'sound', 'lines'],
])

function parseCase(name: string, text: string): WorldCase {
  const at = text.indexOf('\n---\n')
  if (at < 0) throw new Error(`${name}: no line --- before the message`)
  const facts = new Map<string, string[]>()
  let last: string[] | null = null
  for (const line of text.slice(0, at).split('\n')) {
    const [, key = '', value = ''] = /^([a-z-]+): (.*)$/.exec(line) ?? []
    if (key === '' && last && line.startsWith('  ')) last.push(`${last.pop()} ${utf8(line.trim())}`)
    else if (!KNOWN.has(key)) throw new Error(`${name}: ${line}`)
    else {
      last = facts.get(key) ?? []
      last.push(utf8(value))
      facts.set(key, last)
    }
  }
  for (const needed of ['device', 'odd', 'right']) if (!facts.has(needed)) throw new Error(`${name} lacks ${needed}`)
  const message = text.slice(at + 5)
  const blank = message.indexOf('\n\n')
  const [start = '', ...lines] = (blank < 0 ? message.trimEnd() : message.slice(0, blank)).split('\n')
  const headers: string[] = []
  for (const line of lines) {
    if (/^[ \t]/.test(line)) headers.push(`${headers.pop()}\r\n${line}`)
    else headers.push(line)
  }
  const breaks = { cr: '\r', lf: '\n', crlf: '\r\n' }[facts.get('lines')?.[0] ?? 'crlf'] ?? '\r\n'
  const body = (blank < 0 ? '' : message.slice(blank + 2)).replaceAll('\n', breaks)
  return { name, facts, start, headers, body }
}

/** Returns the only value of a fact, or `missing`. */
export const factOf = ({ facts }: WorldCase, key: string, missing = ''): string => facts.get(key)?.[0] ?? missing

const SDP = [
  ...['v=0', 'o=- 1 1 IN IP4 {peer}', 's=-', 'c=IN IP4 {peer}', 't=0 0', 'm=audio {media_port} RTP/AVP 0 101'],
  ...['a=rtpmap:101 telephone-event/8000', ''],
].join('\r\n')

/** Returns the value of a header, in its long or compact form. */
export const headerOf = (text: string, name: string, compact = '-'): string | undefined =>
  new RegExp(`^(?:${name}|${compact})[ \\t]*:[ \\t]*(.*)$`, 'im').exec(unfolded(text))?.[1]?.trim()

const unfolded = (text: string): string => headOf(text).replace(/\r\n[ \t]+/g, ' ')
const headOf = (text: string): string => text.slice(0, text.indexOf('\r\n\r\n'))
const bodyOf = (text: string): string => text.slice(text.indexOf('\r\n\r\n') + 4)
const linesOf = (text: string, name: string): string[] =>
  unfolded(text)
    .split('\r\n')
    .filter(line => new RegExp(`^${name}[ \\t]*:`, 'i').test(line))

interface Outcome {
  /** The final status that the caller got. */
  readonly status: number
  readonly final: string
  /** The INVITE at the target; null when none came. */
  readonly invite: string | null
  /** Who heard the other side. */
  readonly heard: { readonly target: boolean; readonly peer: boolean }
}

interface Waiting {
  readonly message: (text: string) => void
}

/** One end: a SIP socket, and an RTP socket for each call. */
class End {
  readonly sip: Socket
  readonly ip: string
  readonly #calls = new Map<string, Waiting>()
  #others: (text: string, answer: (reply: string) => void) => void = () => undefined

  private constructor(ip: string, sip: Socket) {
    this.ip = ip
    this.sip = sip
    sip.on('message', (data, from) => {
      const text = data.toString('latin1')
      const call = this.#calls.get(headerOf(text, 'Call-ID', 'i') ?? '')
      if (call) call.message(text)
      else this.#others(text, reply => sip.send(bytes(reply), from.port, from.address))
    })
  }

  static async open(t: Test, ip: string): Promise<End> {
    const sip = createSocket({ type: 'udp4', recvBufferSize: 1 << 20 })
    sip.bind(0, ip)
    await once(sip, 'listening')
    t.teardown(() => sip.close())
    return new End(ip, sip)
  }

  get port(): number {
    return this.sip.address().port
  }

  onOthers(handler: (text: string, answer: (reply: string) => void) => void): void {
    this.#others = handler
  }

  follow(call_id: string, message: (text: string) => void): () => void {
    this.#calls.set(call_id, { message })
    return () => this.#calls.delete(call_id)
  }
}

/** The audio of one end of a call: sends RTP until the other end has heard it. */
class Audio {
  readonly socket: Socket
  /** Our SDP to the platform. */
  #own = ''
  readonly heard: Promise<void>
  #timer: NodeJS.Timeout | null = null

  private constructor(socket: Socket) {
    this.socket = socket
    this.heard = new Promise(resolve => socket.on('message', data => isRtp(data) && resolve()))
  }

  static async open(ip: string): Promise<Audio> {
    const socket = createSocket('udp4')
    socket.bind(0, ip)
    await once(socket, 'listening')
    return new Audio(socket)
  }

  get port(): number {
    return this.socket.address().port
  }

  describes(sdp: string): void {
    this.#own = sdp
  }

  /** Sends to the first port of the platform’s SDP, with a payload type of both descriptions. */
  sendTo(theirs: string): void {
    const [, port = '0', types = '0'] = /^m=audio ([1-9]\d*) \S+ (.*)$/m.exec(theirs) ?? []
    const own = /m=audio\s+\S+\s+\S+\s+([\d ]+)/.exec(this.#own)?.[1]?.trim().split(/\s+/) ?? []
    const type = Number(types.split(' ').find(type => own.includes(type)) ?? types.split(' ')[0])
    const host = /^c=IN IP4 (\S+)/m.exec(theirs)?.[1] ?? '127.0.0.1'
    let sequence = 0
    const send = (): void => {
      const packet = Buffer.alloc(172, 0xff)
      packet.writeUInt8(0x80, 0)
      packet.writeUInt8(type, 1)
      packet.writeUInt16BE(++sequence, 2)
      packet.writeUInt32BE(sequence * 160, 4)
      packet.writeUInt32BE(this.port, 8)
      this.socket.send(packet, Number(port), host)
    }
    this.#timer = setInterval(send, 20)
  }

  close(): void {
    if (this.#timer) clearInterval(this.#timer)
    this.socket.close()
  }
}

const isRtp = (data: Buffer): boolean => data.length > 12 && (data[0] ?? 0) >> 6 === 2 && ((data[1] ?? 0) & 0x7f) < 72

interface Places {
  readonly platform: { readonly host: string; readonly port: number }
  /** A number of the project. */
  readonly caller: string
}

let calls = 0

/** A caller and a callee of one trunk. The header X-Case tells the callee which call it gets. */
export class WorldPhones {
  readonly peer: End
  readonly target: End
  readonly #places: Places
  readonly #arriving = new Map<string, (invite: string, answer: (reply: string) => void) => void>()

  private constructor(peer: End, target: End, places: Places) {
    this.peer = peer
    this.target = target
    this.#places = places
    target.onOthers((text, answer) => {
      if (text.startsWith('OPTIONS ')) return answer(reply(text, 200, 'OK', { tag: 'up' }))
      const key = text.startsWith('INVITE ') ? headerOf(text, 'X-Case') : undefined
      const arrived = key === undefined ? undefined : this.#arriving.get(key)
      if (arrived) arrived(text, answer)
    })
  }

  static async open(t: Test, places: Places, [peer_ip, target_ip]: readonly [string, string]): Promise<WorldPhones> {
    return new WorldPhones(await End.open(t, peer_ip), await End.open(t, target_ip), places)
  }

  /** Sends the message as an INVITE; the target answers plainly. */
  invite(one: WorldCase): Promise<Outcome> {
    return this.#decided(() => this.#call(one.name, one, null, factOf(one, 'sound', 'both') === 'both'))
  }

  /** Sends a plain INVITE; the target answers with the headers and the body of the message. */
  answer(one: WorldCase): Promise<Outcome> {
    return this.#decided(() => this.#call(one.name, PLAIN, one, factOf(one, 'sound', 'both') === 'both'))
  }

  /**
   * Calls again, as a telephone does, while the platform is too busy to decide: it says so within 2 s by a 503 that
   * names the time of the next attempt (RFC 3261 §21.5.4).
   */
  async #decided(call: () => Promise<Outcome>): Promise<Outcome> {
    const deadline_ms = performance.now() + PATIENCE_MS
    for (;;) {
      const outcome = await call()
      const seconds = outcome.status === 503 ? Number(headerOf(outcome.final, 'Retry-After')) : Number.NaN
      if (Number.isNaN(seconds) || performance.now() > deadline_ms) return outcome
      await sleep(seconds * 1000)
    }
  }

  async #call(name: string, asked: WorldCase, answered: WorldCase | null, sound: boolean): Promise<Outcome> {
    const n = ++calls
    const key = `${name}-${n}`
    const [near, far] = await Promise.all([Audio.open(this.peer.ip), Audio.open(this.target.ip)])
    const call_id = `world-${n}@${this.peer.ip}`
    const own = this.#filled(asked, near, { call_id, key, n })
    near.describes(bodyOf(own))
    let invite: string | null = null
    let unfollow = (): void => undefined
    this.#arriving.set(key, (text, answer) => {
      // Retransmissions find the same answer.
      invite ??= text
      const sdp = answered ? filledBody(answered.body, this.target, far) : filledBody(SDP, this.target, far)
      far.describes(sdp)
      const headers = answered ? this.#answerHeaders(answered) : ['Content-Type: application/sdp']
      answer(
        reply(text, 200, 'OK', {
          tag: `t${n}`,
          contact: `<sip:t@${this.target.ip}:${this.target.port}>`,
          headers,
          body: sdp,
        }),
      )
      unfollow()
      unfollow = this.target.follow(headerOf(text, 'Call-ID', 'i') ?? '', later => {
        if (later.startsWith('INVITE '))
          answer(
            reply(text, 200, 'OK', {
              tag: `t${n}`,
              contact: `<sip:t@${this.target.ip}:${this.target.port}>`,
              headers,
              body: sdp,
            }),
          )
        else if (/^(BYE|CANCEL) /.test(later)) answer(reply(later, 200, 'OK', { tag: `t${n}` }))
      })
    })
    const heard = { target: false, peer: false }
    try {
      const final = await this.#final(own, call_id)
      const status = Number(final.slice(8, 11))
      if (status < 300) {
        if (sound && invite !== null) await this.#sounds({ near, far, final, invite, heard })
        await this.#hangUp(own, final, call_id)
      }
      return { status, final, invite, heard }
    } finally {
      this.#arriving.delete(key)
      unfollow()
      near.close()
      far.close()
    }
  }

  async #sounds(facts: {
    near: Audio
    far: Audio
    final: string
    invite: string
    heard: { target: boolean; peer: boolean }
  }) {
    const { near, far, final, invite, heard } = facts
    near.sendTo(bodyOf(final))
    far.sendTo(bodyOf(invite))
    const limit = timeLimit()
    await Promise.race([
      Promise.all([
        far.heard.then(() => {
          heard.target = true
        }),
        near.heard.then(() => {
          heard.peer = true
        }),
      ]),
      limit.over,
    ])
    limit.cancel()
  }

  /** Sends the INVITE until something answers, and acknowledges the final response. */
  async #final(own: string, call_id: string): Promise<string> {
    const { platform } = this.#places
    const send = (): void => {
      this.peer.sip.send(bytes(own), platform.port, platform.host)
    }
    const again = setInterval(send, 500)
    const limit = timeLimit()
    try {
      return await new Promise((resolve, reject) => {
        void limit.over.then(() => reject(new Error(`no final answer to\n${own}`)))
        this.peer.follow(call_id, text => {
          clearInterval(again)
          if (!text.startsWith('SIP/2.0 ') || text.startsWith('SIP/2.0 1')) return
          this.#acknowledge(own, text)
          resolve(text)
        })
        send()
      })
    } finally {
      clearInterval(again)
      limit.cancel()
    }
  }

  #acknowledge(own: string, final: string): void {
    this.#send(own, final, 'ACK', final.startsWith('SIP/2.0 2') ? newBranch() : (headerOf(own, 'Via', 'v') ?? ''))
  }

  async #hangUp(own: string, final: string, call_id: string): Promise<void> {
    const limit = timeLimit()
    const { platform } = this.#places
    const ended = new Promise<void>(resolve => {
      this.peer.follow(call_id, text => {
        if (/^SIP\/2\.0 [2-6]/.test(text) && /BYE/.test(headerOf(text, 'CSeq') ?? '')) resolve()
        else if (text.startsWith('SIP/2.0 2')) this.#acknowledge(own, text)
        else if (text.startsWith('BYE ')) {
          this.peer.sip.send(bytes(reply(text, 200, 'OK', { tag: '' })), platform.port, platform.host)
          resolve()
        }
      })
    })
    this.#send(own, final, 'BYE', newBranch())
    await Promise.race([ended, limit.over])
    limit.cancel()
  }

  #send(own: string, final: string, method: 'ACK' | 'BYE', via: string): void {
    const target = /<([^>]*)>/.exec(headerOf(final, 'Contact', 'm') ?? '')?.[1] ?? own.split(' ')[1]
    const number = /\d+/.exec(headerOf(own, 'CSeq') ?? '')?.[0] ?? '1'
    const lines = [
      `${method} ${target} SIP/2.0`,
      `Via: ${via.startsWith('SIP') ? via : `SIP/2.0/UDP ${this.peer.ip}:${this.peer.port};branch=${via}`}`,
      'Max-Forwards: 70',
      `From: ${headerOf(final, 'From', 'f')}`,
      `To: ${headerOf(final, 'To', 't')}`,
      `Call-ID: ${headerOf(final, 'Call-ID', 'i')}`,
      `CSeq: ${method === 'ACK' ? number : Number(number) + 1} ${method}`,
      ...['Content-Length: 0', '', ''],
    ]
    this.peer.sip.send(bytes(lines.join('\r\n')), this.#places.platform.port, this.#places.platform.host)
  }

  #filled(one: WorldCase, audio: Audio, { call_id, key, n }: { call_id: string; key: string; n: number }): string {
    const places = { ...this.#places, peer: this.peer, media_port: audio.port }
    return writtenCase({ ...one, headers: [...one.headers, `X-Case: ${key}`] }, places, { call_id, n })
  }

  #answerHeaders(one: WorldCase): string[] {
    return answerHeaders(one).map(line => line.replaceAll('{peer}', this.target.ip))
  }
}

const OF_THE_TRANSACTION =
  /^(via|v|from|f|to|t|call-id|i|cseq|max-forwards|route|contact|m|content-length|l|x-case)[ \t]*:/i
const ONLY_IN_REQUESTS =
  /^(authorization|proxy-authorization|diversion|history-info|p-called-party-id|expires|subject)[ \t]*:/i

/** Returns the headers of a message that an answer may have too. */
const answerHeaders = ({ headers }: WorldCase): string[] =>
  headers.filter(line => !OF_THE_TRANSACTION.test(line) && !ONLY_IN_REQUESTS.test(line))

/** Returns the final response by which a target refuses a request, with the headers and the body of the message. */
export const asRefusal = (one: WorldCase, request: string): WorldCase => ({
  ...one,
  start: 'SIP/2.0 480 Temporarily Unavailable',
  headers: [
    ...linesOf(request, 'via'),
    ...['From', 'Call-ID', 'CSeq'].map(name => `${name}: ${headerOf(request, name)}`),
    `To: ${headerOf(request, 'To')};tag=refused`,
    ...answerHeaders(one),
  ],
})

/** Returns a message as it goes over the wire. `n` makes it a transaction of its own. */
export function writtenCase(
  one: WorldCase,
  places: Places & { readonly peer: { readonly ip: string; readonly port: number }; readonly media_port: number },
  { call_id, n }: { readonly call_id: string; readonly n: number },
): string {
  const { platform, peer, media_port, caller } = places
  const body = filledBody(one.body, peer, { port: media_port })
  const keys: Record<string, string> = {
    host: platform.host,
    port: String(platform.port),
    peer: peer.ip,
    peer_port: String(peer.port),
    caller,
    branch: `z9hG4bK-world-${n}`,
    tag: `p${n}`,
    call_id,
    length: String(body.length),
  }
  const head = [one.start, ...one.headers].map(line =>
    withBytes(line.replaceAll(/\{(\w+)\}/g, (all, name) => keys[name] ?? all)),
  )
  const has = head.some(line => /^(content-length|l)[ \t]*:/i.test(line))
  return [...head, ...(has ? [] : [`Content-Length: ${keys['length']}`]), '', body].join('\r\n')
}

/** A message that has nothing odd. */
const PLAIN = parseCase(
  'plain',
  `device: none
odd: nothing
right: RFC 3261
---
INVITE sip:+2348030004711@{host}:{port} SIP/2.0
Via: SIP/2.0/UDP {peer}:{peer_port};branch={branch}
Max-Forwards: 70
From: <sip:{caller}@{peer}>;tag={tag}
To: <sip:+2348030004711@{host}>
Call-ID: {call_id}
CSeq: 1 INVITE
Contact: <sip:{peer}:{peer_port}>
Content-Type: application/sdp

${SDP.replaceAll('\r\n', '\n')}`,
)

/** A promise that resolves after the longest time that anything here may take. */
function timeLimit(): { readonly over: Promise<void>; cancel(): void } {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<void>(resolve => {
    timer = setTimeout(resolve, PATIENCE_MS)
  })
  return { over, cancel: () => clearTimeout(timer) }
}

function bytes(text: string): Buffer {
  return Buffer.from(text, 'latin1')
}

export function utf8(text: string): string {
  return Buffer.from(text, 'latin1').toString('utf8')
}

const newBranch = (): string => `z9hG4bK-world-${++calls}-x`

function filledBody(body: string, end: { readonly ip: string }, audio: { readonly port: number }): string {
  return withBytes(
    body
      .replaceAll('{peer}', end.ip)
      .replaceAll('{media_port}', String(audio.port))
      .replaceAll('{rtcp_port}', String(audio.port + 1)),
  )
}

const withBytes = (text: string): string =>
  text.replaceAll(/<hex>([0-9a-f]*)<\/hex>/g, (_all, hex: string) => Buffer.from(hex, 'hex').toString('latin1'))

interface Reply {
  readonly tag: string
  readonly contact?: string
  readonly headers?: readonly string[]
  readonly body?: string
}

function reply(
  request: string,
  status: number,
  phrase: string,
  { tag, contact, headers = [], body = '' }: Reply,
): string {
  const to = headerOf(request, 'To', 't') ?? ''
  const lines = [
    `SIP/2.0 ${status} ${phrase}`,
    ...linesOf(request, '(?:via|v)'),
    ...linesOf(request, 'record-route'),
    `From: ${headerOf(request, 'From', 'f')}`,
    `To: ${/;tag=/i.test(to) || tag === '' ? to : `${to};tag=${tag}`}`,
    `Call-ID: ${headerOf(request, 'Call-ID', 'i')}`,
    `CSeq: ${headerOf(request, 'CSeq')}`,
    ...(contact ? [`Contact: ${contact}`] : []),
    ...headers,
    `Content-Length: ${body.length}`,
  ]
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}
