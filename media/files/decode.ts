import { readAiff } from './aiff.ts'
import { GSM_FRAME_BYTES, readGsm } from './gsm.ts'
import type { Mp3Decoder } from './mp3.ts'
import { type Decoded, SAMPLE_FORMATS, type SampleFormat, toMono, unsupported } from './pcm.ts'
import { isRiff, readWav } from './wav.ts'

/**
 * Decodes a file to mono PCM. The first bytes determine the format; the content type decides when they do not. A file
 * without a sample is refused.
 */
export async function decodeAudio(bytes: Buffer, content_type: string | null, mp3: Mp3Decoder): Promise<Decoded> {
  if (bytes.length === 0) return unsupported('the file is empty')
  const decoded = await decodeByFormat(bytes, content_type, mp3)
  return 'pcm' in decoded && decoded.pcm.samples.length === 0 ? unsupported('the file has no audio') : decoded
}

async function decodeByFormat(bytes: Buffer, content_type: string | null, mp3: Mp3Decoder): Promise<Decoded> {
  const start = bytes.toString('latin1', 0, 12)
  if (isRiff(bytes)) return readWav(bytes)
  if (start.startsWith('FORM')) return readAiff(bytes)
  if (start.startsWith('.snd')) return readAu(bytes)
  if (start.startsWith('ID3') || isMpegFrame(bytes)) return mp3.decode(bytes)
  const type = (content_type ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  if (/^audio\/(x-)?(ulaw|mulaw|basic)$/.test(type)) return raw(bytes, 'ulaw')
  if (/^audio\/(x-)?(alaw)$/.test(type)) return raw(bytes, 'alaw')
  if (/^audio\/(x-)?gsm$/.test(type)) return readGsm(bytes, 'frames')
  if (/^audio\/(mpeg|mp3|x-mp3|x-mpeg)$/.test(type)) return mp3.decode(bytes)
  if (isGsm(bytes)) return readGsm(bytes, 'frames')
  return unsupported(type === '' ? 'the file is of no audio format we know' : `${type} is not supported`)
}

const raw = (bytes: Buffer, format: 'ulaw' | 'alaw'): Decoded => ({
  pcm: { samples: toMono(bytes, SAMPLE_FORMATS[format], 1, 8000), rate_hz: 8000 },
})

/** MPEG audio begins with eleven set bits and a layer that is not the reserved one (ISO 11172-3 §2.4.1.3). */
function isMpegFrame(bytes: Buffer): boolean {
  const [first = 0, second = 0, third = 0] = bytes
  return first === 0xff && (second & 0xe0) === 0xe0 && (second & 0x06) !== 0 && (third & 0xf0) !== 0xf0
}

/** A GSM file has no header, but each of its frames begins with 1101 (RFC 3551 §4.5.8.1). */
function isGsm(bytes: Buffer): boolean {
  const looked_at = Math.min(bytes.length, 100 * GSM_FRAME_BYTES)
  if (bytes.length % GSM_FRAME_BYTES !== 0 || looked_at < 5 * GSM_FRAME_BYTES) return false
  for (let at = 0; at < looked_at; at += GSM_FRAME_BYTES) if ((bytes[at] ?? 0) >> 4 !== 0b1101) return false
  return true
}

/** Decodes Sun .au: after the magic come offset, length, encoding, rate and channels, big-endian. */
function readAu(bytes: Buffer): Decoded {
  if (bytes.length < 24) return unsupported('the .au file is cut')
  const encodings = new Map<number, SampleFormat>([
    [1, SAMPLE_FORMATS.ulaw],
    [2, SAMPLE_FORMATS.s8],
    [3, SAMPLE_FORMATS.s16be],
    [27, SAMPLE_FORMATS.alaw],
  ])
  const format = encodings.get(bytes.readUInt32BE(12))
  const rate_hz = bytes.readUInt32BE(16)
  const channels = bytes.readUInt32BE(20)
  if (!format) return unsupported(`.au encoding ${bytes.readUInt32BE(12)} is not supported`)
  if (channels < 1 || channels > 8 || rate_hz < 4000 || rate_hz > 192_000)
    return unsupported(`an .au file of ${channels} channels at ${rate_hz} Hz`)
  return { pcm: { samples: toMono(bytes.subarray(bytes.readUInt32BE(4)), format, channels, rate_hz), rate_hz } }
}
