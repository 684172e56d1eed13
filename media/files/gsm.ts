import { decodeGsm } from '../../native/index.ts'
import { type Decoded, MAX_SECONDS } from './pcm.ts'

/** A frame has 160 samples; a block of a WAV file has two frames in 65 bytes. */
export const GSM_FRAME_BYTES = 33
const BLOCK_BYTES = 65
const FRAME_SAMPLES = 160

/** Decodes GSM 06.10, of a file of its own or of a WAV file. Truncates after MAX_SECONDS. */
export function readGsm(bytes: Buffer, packing: 'frames' | 'wav', rate_hz = 8000): Decoded {
  const frames = Math.ceil((MAX_SECONDS * rate_hz) / FRAME_SAMPLES)
  const most = packing === 'wav' ? Math.ceil(frames / 2) * BLOCK_BYTES : frames * GSM_FRAME_BYTES
  return { pcm: { samples: decodeGsm(bytes.subarray(0, most), packing), rate_hz } }
}
