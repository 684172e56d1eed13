import { createHash } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { busyFor } from './busy.ts'
import type { Test } from './harness/index.ts'
import { UNHEARD_PORT } from './ports.ts'
import { PATIENCE_MS, until } from './wait.ts'

/**
 * A minimal SIP phone on a UDP socket. It serves tests of digest authentication: SIPp has only one algorithm and hides
 * nonces.
 */
export interface Phone {
  uri(called: string): string
  /** Calls, and calls again while the platform is too busy to decide. `authorization` may be made for each attempt. */
  invite(options: {
    called: string
    caller: string
    cseq: number
    authorization?: string | (() => string)
  }): Promise<Answer>
  register(options: { cseq: number; contact: string; authorization?: string }): Promise<Answer>
  /** Sends a re-INVITE with its first offer. */
  reinvite(cseq: number): Promise<Answer>
  bye(cseq: number): Promise<Answer>
  /** Returns the same phone with a new call. */
  anew(): Phone
}

interface Answer {
  readonly status: number
  readonly headers: readonly string[]
}

const T1_MS = 500
/** Longer than a test file may run: no story waits for the end of a registration. */
const REGISTERED_SECONDS = 3600

/** `at` is where it sends all requests, and may be changed. */
export async function openPhone(t: Test, at: { host: string; port: number; local_ip: string }): Promise<Phone> {
  const socket = createSocket('udp4')
  await new Promise<void>(resolve => socket.bind(0, at.local_ip, resolve))
  t.teardown(() => socket.close())
  const finals = new Map<string, (answer: Answer) => void>()
  /** Retransmission timers of requests without a response (RFC 3261 §17.1, timers A and E), by branch. */
  const unanswered = new Map<string, NodeJS.Timeout>()
  /** ACKs by the branch of their INVITE. Each retransmission of a final response gets its ACK again. */
  const acks = new Map<string, string>()
  t.teardown(() => {
    for (const timer of unanswered.values()) clearTimeout(timer)
  })
  const repeat = (branch: string, text: string, wait_ms: number): void => {
    socket.send(text, at.port, at.host)
    unanswered.set(
      branch,
      setTimeout(() => repeat(branch, text, Math.min(4000, wait_ms * 2)), wait_ms),
    )
  }
  socket.on('message', bytes => {
    const [head = ''] = bytes.toString().split('\r\n\r\n')
    const [first = '', ...headers] = head.split('\r\n')
    const status = Number(/^SIP\/2\.0 (\d{3})/.exec(first)?.[1] ?? 0)
    const branch = /branch=([^;\s]+)/.exec(headers.find(line => /^via:/i.test(line)) ?? '')?.[1] ?? ''
    // Answer the other side's BYE, or it retransmits.
    if (first.startsWith('BYE ')) {
      const kept = headers.filter(line => /^(via|from|to|call-id|cseq):/i.test(line))
      socket.send(`SIP/2.0 200 OK\r\n${kept.join('\r\n')}\r\nContent-Length: 0\r\n\r\n`, at.port, at.host)
    }
    clearTimeout(unanswered.get(branch))
    unanswered.delete(branch)
    if (status < 200) return
    const ack = acks.get(branch)
    if (ack) socket.send(ack, at.port, at.host)
    finals.get(branch)?.({ status, headers })
    finals.delete(branch)
  })
  const local = `${at.local_ip}:${socket.address().port}`
  let count = 0

  const call = (): Phone => {
    const newId = (): string => `phone-${Math.random().toString(36).slice(2)}`
    let call_id = newId()
    let to = ''
    let caller = ''
    let target = ''
    const request = (
      method: string,
      uri: string,
      cseq: number,
      more: readonly string[],
      body = '',
    ): Promise<Answer> => {
      const branch = `z9hG4bK${Math.random().toString(36).slice(2)}${count++}`
      const lines = [
        `${method} ${uri} SIP/2.0`,
        `Via: SIP/2.0/UDP ${local};branch=${branch};rport`,
        `From: <sip:${caller}@${at.local_ip}>;tag=phone`,
        `To: ${to}`,
        `Call-ID: ${call_id}`,
        `CSeq: ${cseq} ${method}`,
        ...(method === 'REGISTER' ? [] : [`Contact: <sip:phone@${local}>`]),
        'Max-Forwards: 70',
        ...more,
        `Content-Length: ${body.length}`,
      ]
      return new Promise(resolve => {
        finals.set(branch, answer => {
          const answered_to =
            answer.headers
              .find(line => /^to:/i.test(line))
              ?.slice(3)
              .trim() ?? to
          if (method === 'INVITE') {
            const contact = answer.headers.find(line => /^contact:/i.test(line))
            target = /<([^>]+)>/.exec(contact ?? '')?.[1] ?? uri
            const ok = answer.status < 300
            const ack = lines.map(line =>
              line.replace(/^CSeq: (\d+) INVITE/, 'CSeq: $1 ACK').replace(/^To: .*/, `To: ${answered_to}`),
            )
            ack[0] = `ACK ${ok ? target : uri} SIP/2.0`
            if (ok) ack[1] = `Via: SIP/2.0/UDP ${local};branch=z9hG4bKack${count++};rport`
            ack[ack.length - 1] = 'Content-Length: 0'
            const text = `${ack.filter(line => !/^(authorization|content-type):/i.test(line)).join('\r\n')}\r\n\r\n`
            socket.send(text, at.port, at.host)
            acks.set(branch, text)
            if (ok) to = answered_to
          }
          resolve(answer)
        })
        repeat(branch, `${lines.join('\r\n')}\r\n\r\n${body}`, T1_MS)
      })
    }
    const uri = (called: string): string => `sip:${called}@${at.host}:${at.port}`
    return {
      uri,
      async invite(options) {
        caller = options.caller
        to = `<${uri(options.called)}>`
        const { authorization } = options
        const deadline_ms = performance.now() + PATIENCE_MS
        for (;;) {
          const proof = typeof authorization === 'function' ? authorization() : authorization
          const more = [...(proof ? [`Authorization: ${proof}`] : []), 'Content-Type: application/sdp']
          const answer = await request('INVITE', uri(options.called), options.cseq, more, sdpOf(at.local_ip))
          const said = (name: string): string => answer.headers.find(line => line.toLowerCase().startsWith(name)) ?? ''
          const again_ms = busyFor(answer.status, said('reason:'), said('retry-after:'))
          if (again_ms === null || performance.now() > deadline_ms) return answer
          await new Promise(resolve => setTimeout(resolve, again_ms))
          call_id = newId()
        }
      },
      register({ cseq, contact, authorization }) {
        caller = 'phone'
        to = `<sip:phone@${at.host}>`
        const more = [
          `Contact: <${contact}>;expires=${REGISTERED_SECONDS}`,
          ...(authorization ? [`Authorization: ${authorization}`] : []),
        ]
        return request('REGISTER', `sip:${at.host}:${at.port}`, cseq, more)
      },
      reinvite: cseq => request('INVITE', target, cseq, ['Content-Type: application/sdp'], sdpOf(at.local_ip)),
      bye: cseq => request('BYE', target, cseq, []),
      anew: call,
    }
  }
  return call()
}

const sdpOf = (address: string): string =>
  [
    ...['v=0', `o=phone 1 1 IN IP4 ${address}`, 's=-', `c=IN IP4 ${address}`, 't=0 0'],
    ...[`m=audio ${UNHEARD_PORT} RTP/AVP 0`, ''],
  ].join('\r\n')

/** Returns an Authorization value (RFC 7616 §3.4). It shares no code with the product. */
export function digestAnswer(facts: {
  algorithm: 'MD5' | 'SHA-256'
  username: string
  password: string
  realm: string
  nonce: string
  nc: string
  uri: string
  method?: 'INVITE' | 'REGISTER'
  cnonce?: string
}): string {
  const { cnonce = 'cnonce' } = facts
  const hash = (text: string): string =>
    createHash(facts.algorithm === 'MD5' ? 'md5' : 'sha256')
      .update(text)
      .digest('hex')
  const ha1 = hash(`${facts.username}:${facts.realm}:${facts.password}`)
  const ha2 = hash(`${facts.method ?? 'INVITE'}:${facts.uri}`)
  const response = hash(`${ha1}:${facts.nonce}:${facts.nc}:${cnonce}:auth:${ha2}`)
  return `Digest username="${facts.username}", realm="${facts.realm}", nonce="${facts.nonce}", uri="${facts.uri}", response="${response}", algorithm=${facts.algorithm}, qop=auth, nc=${facts.nc}, cnonce="${cnonce}"`
}

/** Registers a telephone with the password of its trunk, once that is applied. */
export async function registerPhone(
  phone: Phone,
  at: { readonly host: string; readonly port: number },
  who: { readonly username: string; readonly password: string; readonly contact: string },
): Promise<void> {
  const { contact, ...secrets } = who
  const challenged = await until('it is challenged', async () => {
    const answer = await phone.register({ cseq: 1, contact })
    return answer.status === 401 && answer
  })
  const challenge = challenged.headers.find(line => /^www-authenticate:/i.test(line)) ?? ''
  const said = (name: string): string => new RegExp(`\\b${name}="([^"]*)"`).exec(challenge)?.[1] ?? ''
  const facts = { algorithm: 'SHA-256', method: 'REGISTER', uri: `sip:${at.host}:${at.port}` } as const
  await until('it is registered', async () => {
    const proof = { ...secrets, ...facts, realm: said('realm'), nonce: said('nonce'), nc: '00000001' }
    return (await phone.register({ cseq: 2, contact, authorization: digestAnswer(proof) })).status === 200
  })
}
