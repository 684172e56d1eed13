import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { chmodSync, closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PROGRAMS_PATH } from './installed-programs.ts'

export interface BareRun {
  /** Written to stdin. */
  readonly input?: string
  /** Files in Base64. The program finds them as `bareFile(0)` and so on; nobody else can open them. */
  readonly files?: readonly string[]
  /** The address space that the program may use; without it, any. */
  readonly max_memory?: number
  /** The program is killed after this time; without it, never. */
  readonly limit_ms?: number
  /** A program that writes more to stdout is killed. */
  readonly max_bytes: number
}

export type BareEnd =
  | { readonly ok: true; readonly stdout: Buffer }
  /** `too_long`: the program wrote more than `max_bytes`. */
  | { readonly ok: false; readonly too_long: boolean; readonly detail: string }

const COMPLAINT_CHARACTERS = 200

/** Runs a program with the contract of `runBare`. */
type Runner = (program: string, args: readonly string[], run: BareRun, stop?: AbortSignal) => Promise<BareEnd>

/** Input and output have the descriptors before it. */
const FIRST_FILE = 3

/** The path by which a program opens one of its files. */
export const bareFile = (index: number): string => `/proc/self/fd/${FIRST_FILE + index}`

let runner: Runner = runHere

/** Makes `runBare` use this runner from now on. */
export function runBy(other: Runner): void {
  runner = other
}

/**
 * Runs a third-party program without a shell. It does not inherit our environment, which holds the master key and other
 * secrets. HOME and TMPDIR are a private folder, which is removed when the program ends. `stop` kills the program.
 */
export const runBare: Runner = (program, args, run, stop) => runner(program, args, run, stop)

/** Runs the program as a child of this process. */
async function runHere(program: string, args: readonly string[], run: BareRun, stop?: AbortSignal): Promise<BareEnd> {
  const folder = await mkdtemp(join(tmpdir(), 'strowger-child-'))
  try {
    return await runIn(folder, program, args, run, stop)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Runs a program that finds its home, temporary files and runtime folder in `folder`. */
export function runIn(
  folder: string,
  program: string,
  args: readonly string[],
  { input, files = [], max_memory, limit_ms, max_bytes }: BareRun,
  stop?: AbortSignal,
): Promise<BareEnd> {
  const doors = files.map(openNameless)
  return new Promise<BareEnd>(resolve => {
    const env = { PATH: PROGRAMS_PATH, HOME: folder, TMPDIR: folder, XDG_RUNTIME_DIR: folder, LANG: 'C.UTF-8' }
    const limits = max_memory === undefined ? [] : ['prlimit', `--as=${max_memory}`]
    const [command = program, ...words] = [...limits, program, ...args]
    const stdio = ['pipe', 'pipe', 'pipe', ...doors] as ['pipe', 'pipe', 'pipe', ...number[]]
    const child = spawn(command, words, { env, stdio, shell: false }) as ChildProcessWithoutNullStreams
    const kill = () => child.kill('SIGKILL')
    stop?.addEventListener('abort', kill)
    if (stop?.aborted) kill()
    const chunks: Buffer[] = []
    let bytes = 0
    let complaint = ''
    const timer = limit_ms === undefined ? undefined : setTimeout(kill, limit_ms)
    const failed = (detail: string) => resolve({ ok: false, too_long: bytes > max_bytes, detail })
    child.stdout.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > max_bytes) kill()
      else chunks.push(chunk)
    })
    child.stderr.on('data', (chunk: Buffer) => {
      complaint = (complaint + chunk.toString()).slice(0, COMPLAINT_CHARACTERS)
    })
    // The program may exit before it has read all its input. Its exit status decides whether that is a failure.
    child.stdin.on('error', () => undefined)
    const over = () => {
      clearTimeout(timer)
      stop?.removeEventListener('abort', kill)
    }
    child.on('error', error => {
      over()
      failed(`${program} cannot be run: ${error.message}`)
    })
    child.on('close', (code, signal) => {
      over()
      if (code === 0 && bytes <= max_bytes) resolve({ ok: true, stdout: Buffer.concat(chunks) })
      else failed(`${program} ended with ${signal ?? code}: ${complaint.trim()}`)
    })
    child.stdin.end(input ?? '')
  }).finally(() => {
    for (const door of doors) closeSync(door)
  })
}

/**
 * Opens a file that has no name any more, with these contents. A program of another user can open it by its descriptor,
 * so anybody may read it; until its name is gone, its folder keeps others out.
 */
function openNameless(base64: string): number {
  const folder = mkdtempSync(join(tmpdir(), 'strowger-input-'))
  try {
    const path = join(folder, 'input')
    writeFileSync(path, Buffer.from(base64, 'base64'))
    chmodSync(path, 0o444)
    return openSync(path, 'r')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
