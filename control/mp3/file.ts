import { Readable } from 'node:stream'
import type { Mp3Place } from './encoder.ts'
import { type Mp3Shape, WAV_HEAD_BYTES } from './shape.ts'

/** The file that an MP3 is made of. */
interface WavFile {
  readonly bytes: number
  stream(first: number, last: number): Readable
  close(): Promise<void>
}

/** A client that takes nothing for this long has left. */
const STALL_MS = 60_000
/** A download takes no longer; a client goes on with a range. */
const LONGEST_MS = 3_600_000

/**
 * The MP3 of a recording as a file that is sent: made while it is sent, piece by piece. A range is made from the
 * beginning of the file, because the same bytes come out of no other place. Its end, and a client that leaves, end the
 * work and release the place.
 * @param open opens the WAV file at the first byte that is wanted
 */
export function mp3File(shape: Mp3Shape, place: Mp3Place | null, open: () => Promise<WavFile>) {
  return {
    bytes: shape.bytes,
    async close() {
      place?.release()
    },
    stream(first: number, last: number): Readable {
      if (!place) throw new Error('an MP3 is sent from a place')
      return sent(shape, place, { open, first, last })
    },
  }
}

interface Wanted {
  readonly open: () => Promise<WavFile>
  /** Inclusive. */
  readonly first: number
  readonly last: number
}

function sent(shape: Mp3Shape, place: Mp3Place, { open, first, last }: Wanted): Readable {
  const parts = partOf(encoded(shape, place, open), { bytes: shape.bytes, first, last })
  const stream = new Readable({
    read() {
      stall.refresh()
      parts.next().then(
        ({ done, value }) => this.push(done ? null : value),
        (error: Error) => this.destroy(error),
      )
    },
    destroy(error, done) {
      clearTimeout(stall)
      clearTimeout(longest)
      place.release()
      // Ends the reading too. When a piece is being made, this waits until the release has made it fail.
      parts.return(undefined).then(
        () => done(error),
        (failed: Error) => done(error ?? failed),
      )
    },
  })
  const ended = (why: string) => () => void stream.destroy(new Error(why))
  const stall = setTimeout(ended('the client takes no more of the file'), STALL_MS).unref()
  const longest = setTimeout(ended('the download takes too long'), LONGEST_MS).unref()
  return stream
}

/** Yields the bytes from `first` to `last` of what `pieces` yields. @throws when that is shorter than `bytes` */
async function* partOf(
  pieces: AsyncGenerator<Uint8Array>,
  { bytes, first, last }: { readonly bytes: number; readonly first: number; readonly last: number },
): AsyncGenerator<Uint8Array, undefined, undefined> {
  let at = 0
  for await (const piece of pieces) {
    const part = piece.subarray(Math.max(0, first - at), Math.max(0, last + 1 - at))
    at += piece.length
    if (part.length > 0) yield part
    if (at > last) return
  }
  throw new Error(`the MP3 ended at byte ${at} of ${bytes}`)
}

async function* encoded(
  shape: Mp3Shape,
  place: Mp3Place,
  open: () => Promise<WavFile>,
): AsyncGenerator<Uint8Array, undefined, undefined> {
  const frame = 2 * shape.channels
  const wav = await open()
  try {
    let rest = Buffer.alloc(0)
    if (wav.bytes > WAV_HEAD_BYTES)
      for await (const chunk of wav.stream(WAV_HEAD_BYTES, wav.bytes - 1)) {
        const samples = Buffer.concat([rest, chunk as Buffer])
        const whole = samples.length - (samples.length % frame)
        rest = samples.subarray(whole)
        if (whole > 0) yield await place.encode(shape, new Uint8Array(samples.subarray(0, whole)))
      }
    yield await place.encode(shape, null)
  } finally {
    await wav.close()
  }
}
