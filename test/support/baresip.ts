import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readWavFile, tone, wavBytes } from './audio.ts'
import type { Test } from './harness/index.ts'
import { freeBlock, freePort } from './ports.ts'
import { PATIENCE_MS, until } from './wait.ts'

/** An independent softphone: Debian's baresip, with files as microphone and loudspeaker. */
interface Baresip {
  readonly port: number
  printed(): string
  /** Waits for a line of its output. */
  says(pattern: RegExp): Promise<void>
  /** Runs a command of its menu, such as `transfer`. */
  command(name: string, parameters: string): void
  /** Waits until its loudspeaker has played this long. */
  plays(ms: number): Promise<unknown>
  /** Stops baresip and returns what its loudspeaker played (8 kHz). */
  heard(): Promise<Int16Array>
}

export async function baresip(
  t: Test,
  options: {
    readonly host: string
    readonly user: string
    /** Frequency of the tone that its microphone picks up. */
    readonly tone_hz: number
    /** Whom it calls when it is ready, and again while the platform is too busy to decide. */
    readonly dial?: string
    readonly transport?: 'udp' | 'tcp'
    /** Parameters of its account, such as `;answermode=auto`. */
    readonly account?: string
    /** The registrar of its account. baresip registers there and answers challenges. */
    readonly server?: {
      readonly host: string
      readonly port: number
      readonly username: string
      readonly password: string
    }
  },
): Promise<Baresip> {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-baresip-'))
  const [port, control_port] = await Promise.all([freePort(), freePort()])
  const microphone = join(folder, 'microphone.wav')
  // The call ends with the file, so it lasts longer than a wait.
  writeFileSync(microphone, wavBytes(8000, tone(options.tone_hz, PATIENCE_MS + 30_000)))
  const rtp = await freeBlock(32)
  writeFileSync(join(folder, 'config'), configuration(options.host, { port, control_port, rtp }, folder, microphone))
  const { server } = options
  const home = server ? `${server.host}:${server.port}` : options.host
  const account = `<sip:${options.user}@${home};transport=${options.transport ?? 'udp'}>`
  const login = server ? `;auth_user=${server.username};auth_pass=${server.password};regint=60` : ';regint=0'
  writeFileSync(join(folder, 'accounts'), `${account}${login};audio_codecs=pcmu/8000/1${options.account ?? ''}\n`)
  writeFileSync(join(folder, 'contacts'), '')
  const dial = options.dial === undefined ? [] : ['-e', `/dial ${options.dial}`]
  const child = spawn('baresip', ['-f', folder, '-v', ...dial], { stdio: ['pipe', 'pipe', 'pipe'] })
  const command = (name: string, parameters: string): void => {
    const text = JSON.stringify({ command: name, params: parameters })
    const socket = connect(control_port, '127.0.0.1', () => socket.end(`${text.length}:${text},`))
  }
  let printed = ''
  let refused = 0
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', chunk => {
      printed += chunk
      const busy = printed.split('session closed: 503').length - 1
      if (options.dial === undefined || busy <= refused) return
      refused = busy
      command('dial', options.dial)
    })
  const exited = new Promise<void>(resolve => child.once('exit', () => resolve()))
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
    await exited
  }
  t.teardown(async () => {
    await stop()
    rmSync(folder, { recursive: true, force: true })
  })
  const says = async (pattern: RegExp): Promise<void> => {
    await until(`baresip says ${pattern}`, () => pattern.test(printed))
  }
  await says(/baresip is ready|ready\./i)
  return {
    port,
    printed: () => printed,
    says,
    command,
    plays: ms => until(`baresip has played ${ms} ms`, () => played(folder) >= (ms * 8000) / 1000),
    async heard() {
      await stop()
      const file = loudspeaker(folder)
      return (file && readWavFile(file).channels[0]) || new Int16Array(0)
    },
  }
}

/** Returns the file of the latest call. */
const loudspeaker = (folder: string): string | undefined => {
  const names = readdirSync(folder).filter(entry => entry.endsWith('-dec.wav'))
  const name = names.sort().at(-1)
  return name && join(folder, name)
}

/** Returns the number of samples written so far. */
function played(folder: string): number {
  const file = loudspeaker(folder)
  return file === undefined ? 0 : statSync(file).size / 2
}

const configuration = (
  host: string,
  ports: {
    readonly port: number
    readonly control_port: number
    readonly rtp: { readonly first: number; readonly last: number }
  },
  folder: string,
  microphone: string,
): string =>
  [
    `sip_listen ${host}:${ports.port}`,
    `ctrl_tcp_listen 127.0.0.1:${ports.control_port}`,
    `net_interface ${host}`,
    `rtp_ports ${ports.rtp.first}-${ports.rtp.last}`,
    `audio_source aufile,${microphone}`,
    'audio_player aubridge,loudspeaker',
    'audio_alert aubridge,alert',
    'ausrc_srate 8000',
    'auplay_srate 8000',
    'module_path /usr/lib/baresip/modules',
    ...['g711', 'srtp', 'aufile', 'aubridge', 'sndfile'].map(name => `module ${name}.so`),
    ...['account', 'menu', 'ctrl_tcp'].map(name => `module_app ${name}.so`),
    `snd_path ${folder}`,
    '',
  ].join('\n')
