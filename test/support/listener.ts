import { WebSocket } from 'ws'
import { fromUlaw } from '../../media/files/pcm.ts'
import { encodeG711, sounding, tone, toneLevelDbm0 } from './audio.ts'
import { until } from './wait.ts'

/** What a person hears who listens to a call: each side by its track of the stream. */
interface ListenerEar {
  /** Waits until this track has had the tone, above all else, for a fifth of a second. */
  hears(track: 'inbound' | 'outbound', hz: number): Promise<unknown>
  /** Sends a tone, as a listener who tries to speak would. */
  speak(hz: number): void
  /** Waits for the end, and returns its reason. */
  over(): Promise<string>
  close(): void
}

const WINDOW = 1600

/** Opens the ear of a listener with the credential that made it. */
export async function openEar(base_url: string, path: string, authorization: string): Promise<ListenerEar> {
  const socket = new WebSocket(`${base_url.replace(/^http/, 'ws')}${path}`, { headers: { authorization } })
  const heard: Record<string, number[]> = { inbound: [], outbound: [] }
  let reason: string | null = null
  socket.on('message', data => {
    const { event, media } = JSON.parse(String(data)) as { event: string; media?: { track: string; payload: string } }
    if (event === 'media' && media) heard[media.track]?.push(...fromUlaw(Buffer.from(media.payload, 'base64')))
  })
  socket.on('close', (_code, why) => {
    reason = String(why)
  })
  await new Promise<void>((resolve, reject) => {
    socket.once('open', () => resolve())
    socket.once('error', reject)
  })
  return {
    hears: (track, hz) =>
      until(`the listener hears ${hz} Hz on the ${track} track`, () => {
        const all = sounding(Int16Array.from(heard[track] ?? []))
        for (let at = 0; at + WINDOW <= all.length; at += WINDOW)
          if (toneLevelDbm0(all.subarray(at, at + WINDOW), hz) > -25) return true
        return false
      }),
    speak(hz) {
      const payload = encodeG711('PCMU', tone(hz, 20)).toString('base64')
      for (let frame = 0; frame < 50; frame++)
        socket.send(JSON.stringify({ event: 'media', media: { track: 'inbound', payload } }))
    },
    over: () => until('the listening is over', () => reason ?? undefined),
    close: () => socket.close(),
  }
}

/** Returns the status with which a WebSocket is refused; 101 when it opens. */
export const statusOf = (url: string, headers: Readonly<Record<string, string>>): Promise<number> =>
  new Promise(resolve => {
    const socket = new WebSocket(url, { headers })
    socket.once('open', () => {
      socket.close()
      resolve(101)
    })
    socket.once('unexpected-response', (_request, { statusCode = 0 }) => {
      resolve(statusCode)
      socket.terminate()
    })
    socket.once('error', () => undefined)
  })
