import type { AddressInfo } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'
import { expandUlaw } from '../../media/files/pcm.ts'
import { levelDbm0 } from './audio.ts'
import type { Test } from './harness/index.ts'

/** A frame that a test's WebSocket server received. */
interface SocketFrame {
  readonly event: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read frames of every shape.
  readonly [field: string]: any
}

interface SocketServer {
  readonly url: string
  readonly connections: readonly { readonly headers: Record<string, unknown>; readonly frames: SocketFrame[] }[]
}

/** Starts a WebSocket server that keeps every frame and passes it to `onFrame`. */
export async function socketServer(
  t: Test,
  onFrame: (frame: SocketFrame, socket: WebSocket, frames: readonly SocketFrame[]) => void = () => undefined,
): Promise<SocketServer> {
  const connections: { headers: Record<string, unknown>; frames: SocketFrame[] }[] = []
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  t.teardown(() => {
    for (const client of server.clients) client.terminate()
    server.close()
  })
  server.on('connection', (socket, request) => {
    const connection = { headers: request.headers, frames: [] as SocketFrame[] }
    connections.push(connection)
    socket.on('message', data => {
      const frame = JSON.parse(String(data)) as SocketFrame
      connection.frames.push(frame)
      onFrame(frame, socket, connection.frames)
    })
  })
  await new Promise<void>(resolve => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  return { url: `ws://127.0.0.1:${port}`, connections }
}

/** Returns the level of a frame's media in dBm0. */
const loudness = (frame: SocketFrame): number =>
  levelDbm0(Int16Array.from(Buffer.from(frame['media'].payload, 'base64'), expandUlaw))

/** Reports whether the latest `count` frames of media, of 20 ms each, are silent. */
export function endsSilent(frames: readonly SocketFrame[], count: number): boolean {
  const latest = frames.filter(({ event }) => event === 'media').slice(-count)
  return latest.length === count && latest.every(frame => loudness(frame) < -50)
}

/** Starts an engine that recognizes any sound as `words`: it sends the transcript after half a second of loud audio. */
export const recognizerServer = (t: Test, words: string): Promise<SocketServer> => {
  const loud = new WeakMap<object, number>()
  return socketServer(t, (frame, socket) => {
    if (frame.event === 'stop') socket.close()
    if (frame.event !== 'media' || loudness(frame) < -30) return
    const count = (loud.get(socket) ?? 0) + 1
    loud.set(socket, count)
    const { track } = frame['media']
    if (count === 1) socket.send(JSON.stringify({ event: 'speech_started', track }))
    if (count === 10)
      socket.send(JSON.stringify({ event: 'transcript', track, transcript: 'yes', confidence: 0.5, final: false }))
    if (count === 25)
      socket.send(
        JSON.stringify({
          event: 'transcript',
          track,
          transcript: words,
          confidence: 0.9,
          final: true,
          language: 'en-GB',
        }),
      )
  })
}
