import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'
import { wavFile } from '../../media/speech/wav-file.ts'

/** The customer's agent and the engines, which answer at once. */

export interface Servers {
  readonly agent_url: string
  readonly stt_url: string
  readonly tts_url: string
  /** When each step of the latest turn happened, by call. */
  readonly stamps: ReadonlyMap<string, Partial<Stamps>>
  /** Called when the recogniser has told the words of a call. */
  onRecognised: (call: string) => void
  close(): void
}

/** Monotonic milliseconds. */
interface Stamps {
  readonly recognised: number
  readonly agent_got: number
  readonly agent_sent: number
  readonly voice_got: number
  readonly voice_sent: number
}

/** The answer that the agent speaks. */
export const ANSWER_MS = 3000
/** The pause after which the recogniser takes an utterance to be over. */
const PAUSE_FRAMES = 15
const SPOKEN_FRAMES = 10

export async function startServers(): Promise<Servers> {
  const stamps = new Map<string, Partial<Stamps>>()
  const stamp = (call: string, step: keyof Stamps) =>
    stamps.set(call, { ...(step === 'recognised' ? {} : stamps.get(call)), [step]: performance.now() })
  const wav = answer()
  const http = createServer((request, response) => void speak(request, response).catch(console.error))
  const speak = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const text: string[] = []
    for await (const chunk of request) text.push(String(chunk))
    const [call = ''] = String(JSON.parse(text.join('')).text).split(' ')
    stamp(call, 'voice_got')
    stamp(call, 'voice_sent')
    response.writeHead(200, { 'content-type': 'audio/wav' }).end(wav)
  }
  const stt = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  stt.on('connection', socket => {
    let call = ''
    let loud = 0
    let quiet = 0
    socket.on('message', data => {
      const frame = JSON.parse(String(data))
      if (frame.event === 'start') call = frame.start.callSid
      if (frame.event !== 'media') return
      const voice = Buffer.from(frame.media.payload, 'base64').some(code => (code & 0x7f) < 0x50)
      loud += voice ? 1 : 0
      quiet = voice ? 0 : quiet + 1
      if (loud < SPOKEN_FRAMES || quiet < PAUSE_FRAMES) return
      loud = 0
      stamp(call, 'recognised')
      servers.onRecognised(call)
      socket.send(JSON.stringify({ event: 'transcript', track: 'inbound', transcript: 'words', final: true }))
    })
  })
  const agent = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  agent.on('connection', socket => {
    let call = ''
    let turn = 0
    socket.on('message', data => {
      const message = JSON.parse(String(data))
      if (message.type === 'setup') call = message.callSid
      if (message.type !== 'prompt' || !message.last) return
      stamp(call, 'agent_got')
      stamp(call, 'agent_sent')
      socket.send(JSON.stringify({ type: 'text', token: `${call} answers for turn ${++turn}.`, last: true }))
    })
  })
  http.listen(0, '127.0.0.1')
  await Promise.all([once(http, 'listening'), once(stt, 'listening'), once(agent, 'listening')])
  const port = (server: { address(): unknown }) => (server.address() as AddressInfo).port
  const servers: Servers = {
    stamps,
    onRecognised: () => undefined,
    agent_url: `ws://127.0.0.1:${port(agent)}/`,
    stt_url: `ws://127.0.0.1:${port(stt)}/`,
    tts_url: `http://127.0.0.1:${port(http)}/`,
    close() {
      for (const server of [stt, agent]) {
        for (const client of server.clients) client.terminate()
        server.close()
      }
      http.close()
      http.closeAllConnections()
    },
  }
  return servers
}

/** A sound without pauses, so that every gap in what is heard is a fault. */
const answer = (): Buffer =>
  wavFile(
    Int16Array.from({ length: ANSWER_MS * 8 }, (_, at) => Math.round(8000 * Math.sin((2 * Math.PI * 500 * at) / 8000))),
  )
