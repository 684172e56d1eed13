import { RATE_HZ } from './recognizer.ts'

/** Encodes a WAV file of 16-bit PCM with one channel. */
export function wavFile(samples: Int16Array): Buffer {
  const bytes = Buffer.alloc(44 + samples.length * 2)
  bytes.write('RIFF', 0, 'latin1')
  bytes.writeUInt32LE(bytes.length - 8, 4)
  bytes.write('WAVEfmt ', 8, 'latin1')
  bytes.writeUInt32LE(16, 16)
  bytes.writeUInt16LE(1, 20)
  bytes.writeUInt16LE(1, 22)
  bytes.writeUInt32LE(RATE_HZ, 24)
  bytes.writeUInt32LE(RATE_HZ * 2, 28)
  bytes.writeUInt16LE(2, 32)
  bytes.writeUInt16LE(16, 34)
  bytes.write('data', 36, 'latin1')
  bytes.writeUInt32LE(samples.length * 2, 40)
  for (const [index, sample] of samples.entries()) bytes.writeInt16LE(sample, 44 + index * 2)
  return bytes
}
