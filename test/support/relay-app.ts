import type { AddressInfo } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'
import { trimmed } from './audio.ts'
import type { Test } from './harness/index.ts'
import type { RtpPeer } from './rtp-peer.ts'
import { PATIENCE_MS, until } from './wait.ts'

/** A message of the platform to a relay application. */
interface RelayMessage {
  readonly type: string
  /** When it came, by the monotonic clock. */
  readonly at_ms: number
  // biome-ignore lint/suspicious/noExplicitAny: tests read messages of every shape.
  readonly [field: string]: any
}

interface RelayApp {
  readonly url: string
  readonly messages: readonly RelayMessage[]
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  /** Whether the platform has closed the last connection. */
  closed(): boolean
  send(message: object | string): void
  close(): void
  /** Resolves with the first matching message, past or future. */
  told(type: string, matches?: (message: RelayMessage) => boolean): Promise<RelayMessage>
  of(type: string): RelayMessage[]
}

/** Starts a relay application. `answer` gets each message and may send. */
export async function relayApp(
  t: Test,
  answer: (message: RelayMessage, send: (message: object) => void) => void = () => undefined,
): Promise<RelayApp> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  const messages: RelayMessage[] = []
  let socket: WebSocket | null = null
  let closed = false
  let headers: RelayApp['headers'] = {}
  t.teardown(() => {
    for (const client of server.clients) client.terminate()
    server.close()
    if (!t.passing()) t.comment(`the application was told ${JSON.stringify(messages)}`)
  })
  server.on('connection', (connected, request) => {
    socket = connected
    closed = false
    headers = request.headers
    connected.on('close', () => {
      closed = true
    })
    connected.on('message', data => {
      const message = { ...JSON.parse(String(data)), at_ms: performance.now() } as RelayMessage
      messages.push(message)
      answer(message, sent => connected.send(JSON.stringify(sent)))
    })
  })
  await new Promise<void>(resolve => server.once('listening', resolve))
  const of = (type: string) => messages.filter(message => message.type === type)
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/agent`,
    messages,
    get headers() {
      return headers
    },
    closed: () => closed,
    send: message => socket?.send(typeof message === 'string' ? message : JSON.stringify(message)),
    close: () => socket?.close(),
    of,
    async told(type, matches = () => true) {
      const found = () => of(type).find(matches)
      await until(`the application is told ${type}`, () => found() !== undefined)
      return found() as RelayMessage
    },
  }
}

/** Starts an agent that repeats what the caller says, and goes on and on. On the key 0 it hands over to a person. */
export const echoAgent = (t: Test): Promise<RelayApp> =>
  relayApp(t, (message, send) => {
    if (message.type === 'prompt' && message['last'])
      for (const token of [`You said ${message['voicePrompt']}. `, ...Array(20).fill('And I go on and on about it. ')])
        send({ type: 'text', token })
    if (message.type === 'prompt' && message['last']) send({ type: 'text', token: 'That was it.', last: true })
    if (message.type === 'dtmf') send({ type: 'end', handoffData: '{"to":"a person"}' })
  })

const HUSH = new Int16Array(8 * 5000)

/**
 * Says a phrase to an agent until the agent gets exactly this phrase: a stop of this process may split it. Resolves
 * with the prompt that the agent got.
 */
export async function say(app: RelayApp, peer: RtpPeer, phrase: string, speech: Int16Array): Promise<RelayMessage> {
  const prompts = () => app.of('prompt').filter(({ last }) => last)
  for (const begun_ms = performance.now(); ; ) {
    const before = prompts().length
    await peer.send(speech)
    await peer.send(HUSH, () => prompts().length > before)
    const told = prompts()
      .slice(before)
      .find(({ voicePrompt }) => voicePrompt === phrase)
    if (told) return told
    if (performance.now() - begun_ms > PATIENCE_MS) throw new Error(`the agent was never told of "${phrase}"`)
  }
}

/**
 * Says a phrase until at least `length` samples of the agent's answer are heard. The rest of a phrase that was split
 * may cut the answer: then the phrase is said again. Resolves with the answer so far, and when the agent was told.
 */
export async function sayAndHear(
  app: RelayApp,
  peer: RtpPeer,
  phrase: string,
  speech: Int16Array,
  length: number,
): Promise<{ readonly at_ms: number; readonly answer: Int16Array }> {
  for (const begun_ms = performance.now(); ; ) {
    const { at_ms } = await say(app, peer, phrase, speech)
    const heard = (): Int16Array => trimmed(peer.audio(peer.received.findIndex(one => one.at_ms >= at_ms)))
    const cut = (): boolean => app.of('interrupt').some(interrupt => interrupt.at_ms > at_ms)
    await peer.until(() => cut() || heard().length >= length, PATIENCE_MS, 'the answer')
    if (!cut()) return { at_ms, answer: heard() }
    if (performance.now() - begun_ms > PATIENCE_MS) throw new Error(`the answer to "${phrase}" was always cut`)
  }
}
