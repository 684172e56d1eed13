import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { tone, wavBytes } from '../../support/audio.ts'
import type { Test } from '../../support/harness/index.ts'
import { freeBlock, freePort } from '../../support/ports.ts'
import { until } from '../../support/wait.ts'

/** Debian's linphonec, with files as microphone and loudspeaker. */
interface Linphone {
  /** Runs a command of its prompt, such as `call` or `transfer`. */
  command(line: string): void
  /** Offers and takes this codec alone from now on. */
  restrictTo(codec: LinphoneCodec): void
  /** Plays its next call, which has this codec, into a file of its own. */
  tape(codec: LinphoneCodec): Tape
  /** Unregisters and exits. */
  stop(): Promise<void>
}

interface Tape {
  /** Waits until this much sound was played, silence included. */
  plays(ms: number): Promise<unknown>
  /** Waits until the call has ended and returns what it heard. */
  heard(): Promise<{ readonly samples: Int16Array; readonly rate_hz: number }>
}

/** The codecs that linphone and the platform have, by linphone's name and clock. Debian's has no plugin for G.729. */
export const CODECS = {
  PCMU: 8000,
  PCMA: 8000,
  G722: 8000,
  opus: 48_000,
} as const
export type LinphoneCodec = keyof typeof CODECS
/** The sample rates of its recordings, which are mono. */
const PLAYED_HZ: Readonly<Record<LinphoneCodec, number>> = { PCMU: 8000, PCMA: 8000, G722: 16_000, opus: 48_000 }
const NAMES = Object.keys(CODECS) as LinphoneCodec[]

export type Transport = 'udp' | 'tcp' | 'tls'

export interface Account {
  readonly host: string
  readonly user: string
  /** The tone that its microphone picks up. */
  readonly tone_hz: number
  readonly transport: Transport
  /** Whether its calls must have SRTP with keys in the SDP. */
  readonly encrypted: boolean
  /** Where it registers, and with which credentials. */
  readonly server: {
    readonly host: string
    readonly port: number
    readonly realm: string
    readonly username: string
    readonly password: string
    /** The certificates that it trusts. */
    readonly certificates: string
  }
}

/** Starts linphone, which registers and answers every call. Its only codec is PCMU until a test chooses another. */
export async function linphone(t: Test, account: Account): Promise<Linphone> {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-linphone-'))
  // Without this folder for its database it starts, but opens no socket.
  mkdirSync(join(folder, '.local/share/linphone'), { recursive: true })
  const microphone = join(folder, 'microphone.wav')
  writeFileSync(microphone, wavBytes(8000, tone(account.tone_hz, 60_000)))
  const rtp = await freeBlock(16)
  writeFileSync(join(folder, 'rc'), configuration(account, await freePort(), rtp.first))
  const child = spawn('linphonec', ['-a', '-c', join(folder, 'rc')], {
    env: { PATH: process.env['PATH'] ?? '', HOME: folder },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let printed = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', chunk => {
      printed += chunk
    })
  const exited = new Promise<void>(resolve => child.once('exit', () => resolve()))
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.stdin.write('quit\n')
    await exited
  }
  t.teardown(async () => {
    if (!t.passing()) t.comment(`linphonec said: ${printed.slice(-3000)}`)
    await stop()
    rmSync(folder, { recursive: true, force: true })
  })
  const says = async (pattern: RegExp): Promise<string> =>
    until(`linphonec says ${pattern}`, () => pattern.exec(printed)?.[1]).catch(error => {
      throw new Error(`${error}; it said: ${printed.slice(-2000)}`)
    })
  const command = (line: string): void => void child.stdin.write(`${line}\n`)
  await says(/(linphonec>)/)
  for (const line of ['soundcard use files', `play ${microphone}`, 'codec list']) command(line)
  const at = new Map<LinphoneCodec, string>()
  for (const name of NAMES) at.set(name, await says(new RegExp(`(\\d+): ${name} \\(${CODECS[name]}\\)`)))
  let tapes = 0
  return {
    command,
    restrictTo(codec) {
      for (const name of NAMES) command(`codec ${name === codec ? 'enable' : 'disable'} ${at.get(name)}`)
    },
    tape(codec) {
      const path = join(folder, `heard-${++tapes}.wav`)
      command(`record ${path}`)
      return {
        plays: ms =>
          until(`linphone has played ${ms} ms`, () => sizeOf(path) >= HEADER + (ms * PLAYED_HZ[codec] * 2) / 1000),
        heard: () =>
          until('the recording is complete', () => {
            // The header is empty until the call ends.
            const bytes = sizeOf(path) > HEADER ? readFileSync(path) : Buffer.alloc(0)
            if (!bytes.subarray(0, 4).equals(RIFF)) return null
            // Debian's linphone claims more data than the file has.
            const [channels, rate_hz] = [bytes.readUInt16LE(22), bytes.readUInt32LE(24)]
            const frames = Math.floor((bytes.length - HEADER) / 2 / channels)
            const sample = (frame: number): number => bytes.readInt16LE(HEADER + frame * 2 * channels)
            return { samples: Int16Array.from({ length: frames }, (_value, frame) => sample(frame)), rate_hz }
          }),
      }
    },
    stop,
  }
}

const RIFF = Buffer.from('RIFF')
/** Octets of the header of its recordings. */
const HEADER = 44
const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

const configuration = (account: Account, port: number, rtp_port: number): string => {
  const { host, user, server, transport, encrypted } = account
  const ports = { udp: 0, tcp: 0, tls: 0, [transport]: port }
  const registrar = `<sip:${server.host}:${server.port};transport=${transport}>`
  return [
    '[sip]',
    ...[`sip_port=${ports.udp}`, `sip_tcp_port=${ports.tcp}`, `sip_tls_port=${ports.tls}`],
    ...[`bind_address=${host}`, 'default_proxy=0', 'use_ipv6=0', 'guess_hostname=0'],
    ...[`contact=sip:${user}@${host}`, 'register_only_when_network_is_up=0'],
    // Its TLS library cannot compare the address of the server with one in a certificate.
    ...[`root_ca=${server.certificates}`, 'verify_server_certs=1', 'verify_server_cn=0'],
    ...(encrypted ? ['media_encryption=srtp', 'media_encryption_mandatory=1'] : []),
    '[rtp]',
    ...[`audio_rtp_port=${rtp_port}`, 'audio_jitt_comp=60'],
    '[sound]',
    ...['echocancellation=0', 'echolimiter=0', 'agc=0'],
    ...NAMES.flatMap((name, index) => [
      `[audio_codec_${index}]`,
      ...[`mime=${name}`, `rate=${CODECS[name]}`, `channels=${name === 'opus' ? 2 : 1}`],
      `enabled=${name === 'PCMU' ? 1 : 0}`,
    ]),
    '[proxy_0]',
    ...[`reg_proxy=${registrar}`, `reg_route=${registrar}`, `reg_identity=sip:${user}@${server.host}`],
    ...['reg_expires=60', 'reg_sendregister=1'],
    '[auth_info_0]',
    ...[`username=${user}`, `userid=${server.username}`, `passwd=${server.password}`],
    ...[`realm=${server.realm}`, `domain=${server.host}`],
    '',
  ].join('\n')
}
