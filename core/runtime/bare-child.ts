import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface BareRun {
  /** Written to stdin. */
  readonly input?: string
  /** The program is killed after this time; without it, never. */
  readonly limit_ms?: number
  /** A program that writes more to stdout is killed. */
  readonly max_bytes: number
}

export type BareEnd =
  | { readonly ok: true; readonly stdout: Buffer }
  /** `too_long`: the program wrote more than `max_bytes`. */
  | { readonly ok: false; readonly too_long: boolean; readonly detail: string }

/** The PATH of child programs. Our own PATH is not used, because children inherit nothing from our environment. */
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
const COMPLAINT_CHARACTERS = 200

/** Runs a program with the contract of `runBare`. */
type Runner = (program: string, args: readonly string[], run: BareRun) => Promise<BareEnd>

let runner: Runner = runHere

/** Makes `runBare` use this runner from now on. */
export function runBy(other: Runner): void {
  runner = other
}

/**
 * Runs a third-party program without a shell. It does not inherit our environment, which holds the master key and other
 * secrets. HOME and TMPDIR are a private folder, which is removed when the program ends.
 */
export const runBare: Runner = (program, args, run) => runner(program, args, run)

/** Runs the program as a child of this process. */
async function runHere(program: string, args: readonly string[], run: BareRun): Promise<BareEnd> {
  const folder = await mkdtemp(join(tmpdir(), 'strowger-child-'))
  try {
    return await runIn(folder, program, args, run)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Runs a program that finds its home, temporary files and runtime folder in `folder`. */
export function runIn(
  folder: string,
  program: string,
  args: readonly string[],
  { input, limit_ms, max_bytes }: BareRun,
): Promise<BareEnd> {
  return new Promise<BareEnd>(resolve => {
    const env = { PATH, HOME: folder, TMPDIR: folder, XDG_RUNTIME_DIR: folder, LANG: 'C.UTF-8' }
    const child = spawn(program, args, { env, stdio: 'pipe', shell: false })
    const chunks: Buffer[] = []
    let bytes = 0
    let complaint = ''
    const timer = limit_ms === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), limit_ms)
    const failed = (detail: string) => resolve({ ok: false, too_long: bytes > max_bytes, detail })
    child.stdout.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > max_bytes) child.kill('SIGKILL')
      else chunks.push(chunk)
    })
    child.stderr.on('data', (chunk: Buffer) => {
      complaint = (complaint + chunk.toString()).slice(0, COMPLAINT_CHARACTERS)
    })
    // The program may exit before it has read all its input. Its exit status decides whether that is a failure.
    child.stdin.on('error', () => undefined)
    child.on('error', error => {
      clearTimeout(timer)
      failed(`${program} cannot be run: ${error.message}`)
    })
    child.on('close', (code, signal) => {
      clearTimeout(timer)
      if (code === 0 && bytes <= max_bytes) resolve({ ok: true, stdout: Buffer.concat(chunks) })
      else failed(`${program} ended with ${signal ?? code}: ${complaint.trim()}`)
    })
    child.stdin.end(input ?? '')
  })
}
