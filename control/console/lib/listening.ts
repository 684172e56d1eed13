/** Plays both sides of a live call while the frames of its media stream arrive (µ-law at 8 kHz in JSON). */

const RATE_HZ = 8000
/** Audio is played this long after it came, so that an uneven network is not heard. */
const HELD_S = 0.15
/** What would be played later than this is dropped: live is better than whole. */
const MOST_HELD_S = 1

/** The sample of a µ-law byte (ITU-T G.711), from -1 to 1. */
function expand(byte: number): number {
  const value = ~byte & 0xff
  const magnitude = ((((value & 0x0f) << 3) + 0x84) << ((value & 0x70) >> 4)) - 0x84
  return (value & 0x80 ? -magnitude : magnitude) / 32_768
}

const samplesOf = (payload: string): Float32Array<ArrayBuffer> =>
  Float32Array.from(atob(payload), character => expand(character.charCodeAt(0)))

interface Frame {
  readonly event: string
  readonly media?: { readonly track: string; readonly payload: string }
}

interface Listening {
  stop(): void
}

/** `heard` is called with the first audio, and `over` once when the call or the connection has ended. */
export function listenAt(path: string, on: { heard(): void; over(why: string): void }): Listening {
  const scheme = location.protocol === 'https:' ? 'wss:' : 'ws:'
  const socket = new WebSocket(`${scheme}//${location.host}/console/api${path}`)
  const audio = new AudioContext()
  /** When the next audio of each side is due. */
  const due = new Map<string, number>()
  socket.addEventListener('message', ({ data }) => {
    const { event, media } = JSON.parse(String(data)) as Frame
    if (event !== 'media' || !media) return
    if (due.size === 0) on.heard()
    const samples = samplesOf(media.payload)
    const now_s = audio.currentTime
    const at_s = Math.max(due.get(media.track) ?? 0, now_s + HELD_S)
    if (at_s > now_s + MOST_HELD_S) return
    const buffer = audio.createBuffer(1, samples.length, RATE_HZ)
    buffer.copyToChannel(samples, 0)
    const source = audio.createBufferSource()
    source.buffer = buffer
    source.connect(audio.destination)
    source.start(at_s)
    due.set(media.track, at_s + samples.length / RATE_HZ)
  })
  socket.addEventListener('close', ({ reason }) => {
    void audio.close()
    on.over(reason)
  })
  return { stop: () => socket.close() }
}
