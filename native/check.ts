// Checks the arguments of the native API. The add-on converts checked values without validating them again.
import { isIP } from 'node:net'
import { isAbsolute } from 'node:path'
import type {
  PayloadType,
  PlayOptions,
  RecordOptions,
  SampleRate,
  SpeechWatchOptions,
  StreamDescription,
} from './types.ts'

const KEY_BYTES = {
  AES_CM_128_HMAC_SHA1_80: 30,
  AES_CM_128_HMAC_SHA1_32: 30,
  AES_256_CM_HMAC_SHA1_80: 46,
  AES_256_CM_HMAC_SHA1_32: 46,
  AEAD_AES_128_GCM: 28,
  AEAD_AES_256_GCM: 44,
} as const

export function checkInteger(name: string, value: number, min: number, max: number): number {
  if (!Number.isInteger(value) || value < min || value > max) throw new TypeError(`${name}: ${min} to ${max}`)
  return value
}

export function checkAddress(name: string, value: string): void {
  if (isIP(value) === 0) throw new TypeError(`${name}: an IP literal`)
}

export function checkCidrs(name: string, cidrs: readonly string[]): void {
  if (cidrs.length > 1024) throw new TypeError(`${name}: at most 1024`)
  for (const cidr of cidrs) {
    const [address = '', bits, ...rest] = cidr.split('/')
    const family = isIP(address)
    if (family === 0 || rest.length > 0) throw new TypeError(`${name}: a network such as 192.0.2.0/24`)
    if (bits !== undefined) checkInteger(`${name}: prefix length`, Number(bits), 0, family === 4 ? 32 : 128)
  }
}

export function checkPcm(samples: Int16Array): void {
  if (!(samples instanceof Int16Array)) throw new TypeError('samples: an Int16Array')
}

export function checkRate<R extends SampleRate>(rate_hz: R): R {
  if (![8000, 16000, 24000, 48000].includes(rate_hz)) throw new TypeError('rate_hz: 8000, 16000, 24000 or 48000')
  return rate_hz
}

function checkPayloadType(name: string, type: PayloadType): void {
  checkInteger(`${name}.payload_type`, type.payload_type, 0, 127)
  checkInteger(`${name}.clock_rate`, type.clock_rate, 1000, 192_000)
  if (!/^[A-Za-z0-9._-]{1,32}$/.test(type.codec)) throw new TypeError(`${name}.codec: an encoding name`)
}

export function checkDescription(description: StreamDescription): StreamDescription {
  const { remote, receive, send, telephone_event, srtp } = description
  if (remote) {
    checkAddress('remote.address', remote.address)
    checkInteger('remote.rtp_port', remote.rtp_port, 1, 65535)
    if (remote.rtcp_port != null) checkInteger('remote.rtcp_port', remote.rtcp_port, 1, 65535)
  }
  if (receive.length > 32) throw new TypeError('receive: at most 32 payload types')
  for (const type of receive) checkPayloadType('receive', type)
  if (send) {
    checkPayloadType('send', send)
    if (checkInteger('send.ptime_ms', send.ptime_ms, 10, 60) % 10 !== 0) throw new TypeError('send.ptime_ms: tens')
    if (send.bitrate !== undefined) checkInteger('send.bitrate', send.bitrate, 6000, 510_000)
  }
  for (const type of telephone_event?.receive ?? []) checkPayloadType('telephone_event.receive', type)
  if (telephone_event?.send) checkPayloadType('telephone_event.send', telephone_event.send)
  if (srtp) {
    const bytes = KEY_BYTES[srtp.suite]
    if (bytes === undefined) throw new TypeError('srtp.suite: unknown')
    for (const key of [srtp.receive_key, srtp.send_key]) {
      if (!(key instanceof Uint8Array) || key.byteLength !== bytes) throw new TypeError(`srtp: keys of ${bytes} bytes`)
    }
  }
  return description
}

export function checkPlay(options: PlayOptions): PlayOptions {
  if (options.play_id.length < 1 || options.play_id.length > 64) throw new TypeError('play_id: 1 to 64 characters')
  if (options.pieces.length < 1 || options.pieces.length > 256) throw new TypeError('pieces: 1 to 256')
  checkInteger('loop', options.loop ?? 1, 0, 1_000_000)
  for (const piece of options.pieces) {
    if (piece.kind === 'pcm') {
      checkPcm(piece.samples)
      checkRate(piece.rate_hz)
    } else if (piece.kind === 'tone') {
      if (piece.hz.length < 1 || piece.hz.length > 4) throw new TypeError('hz: 1 to 4 frequencies')
      for (const hz of piece.hz) if (!(hz >= 20 && hz <= 3900)) throw new TypeError('hz: 20 to 3900')
      checkInteger('on_ms', piece.on_ms, 1, 86_400_000)
      checkInteger('off_ms', piece.off_ms, 0, 86_400_000)
      if (piece.total_ms !== null) checkInteger('total_ms', piece.total_ms, 1, 86_400_000)
    } else {
      checkInteger('ms', piece.ms, 0, 86_400_000)
    }
  }
  return options
}

export function checkRecording(
  options: Pick<RecordOptions, 'recording_id' | 'file' | 'channels' | 'max_ms' | 'silence_ms' | 'finish_keys'>,
): void {
  if (options.recording_id.length < 1 || options.recording_id.length > 64) {
    throw new TypeError('recording_id: 1 to 64 characters')
  }
  if (!isAbsolute(options.file) || options.file.includes('\0')) throw new TypeError('file: an absolute path')
  if (options.channels !== 1 && options.channels !== 2) throw new TypeError('channels: 1 or 2')
  if (options.max_ms != null) checkInteger('max_ms', options.max_ms, 1, 86_400_000)
  if (options.silence_ms != null) checkInteger('silence_ms', options.silence_ms, 100, 86_400_000)
  if (!/^[0-9A-D*#]{0,16}$/.test(options.finish_keys ?? '')) throw new TypeError('finish_keys: of 0-9 A-D * #')
}

export function checkSpeechWatch(options: SpeechWatchOptions): [onset_ms: number, end_ms: number, suppress: boolean] {
  const onset_ms = checkInteger('onset_ms', options.onset_ms, 40, 320)
  if (onset_ms % 40 !== 0) throw new TypeError('onset_ms: a multiple of 40')
  return [onset_ms, checkInteger('end_ms', options.end_ms, 200, 5000), options.suppress_noise ?? false]
}
