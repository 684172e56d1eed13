import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
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
}

interface Account {
  readonly host: string
  readonly user: string
  /** The tone that its microphone picks up. */
  readonly tone_hz: number
  /** Where it registers, and with which credentials. */
  readonly server: {
    readonly host: string
    readonly port: number
    readonly realm: string
    readonly username: string
    readonly password: string
  }
}

/** Starts it; it registers, and answers every call. */
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
    await stop()
    rmSync(folder, { recursive: true, force: true })
  })
  const says = async (pattern: RegExp): Promise<void> => {
    await until(`linphonec says ${pattern}`, () => pattern.test(printed)).catch(error => {
      throw new Error(`${error}; it said: ${printed.slice(-2000)}`)
    })
  }
  const command = (line: string): void => void child.stdin.write(`${line}\n`)
  await says(/linphonec>/)
  for (const line of ['soundcard use files', `play ${microphone}`]) command(line)
  return {
    command,
  }
}

const configuration = ({ host, user, server }: Account, port: number, rtp_port: number): string =>
  [
    '[sip]',
    ...[`sip_port=${port}`, 'sip_tcp_port=0', 'sip_tls_port=0', `bind_address=${host}`, 'default_proxy=0'],
    ...['use_ipv6=0', 'guess_hostname=0', `contact=sip:${user}@${host}`, 'register_only_when_network_is_up=0'],
    '[rtp]',
    ...[`audio_rtp_port=${rtp_port}`, 'audio_jitt_comp=60'],
    '[audio_codec_0]',
    ...['mime=PCMU', 'rate=8000', 'channels=1', 'enabled=1'],
    '[proxy_0]',
    ...[`reg_proxy=sip:${server.host}:${server.port}`, `reg_identity=sip:${server.username}@${server.host}`],
    ...['reg_expires=60', 'reg_sendregister=1'],
    '[auth_info_0]',
    ...[`username=${server.username}`, `userid=${server.username}`, `passwd=${server.password}`],
    ...[`realm=${server.realm}`, `domain=${server.host}`],
    '',
  ].join('\n')
