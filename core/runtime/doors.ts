import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  copyFileSync,
  mkdirSync,
  openSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** Of open(2); Node.js has no name for it: the folder itself need not be readable. */
const O_PATH = 0o10000000
const root = fileURLToPath(new URL('../../..', import.meta.url))
/** What of the tree is loaded after the start: our own code, its packages, the addon. */
const PARTS = ['build', 'node_modules', 'native']

/**
 * A folder that this process may use whoever it becomes, also where it may not pass through the folders above: its
 * paths go through a descriptor.
 */
export class Door {
  readonly #folder: string
  readonly #fd: number

  constructor(folder: string) {
    this.#folder = resolve(folder)
    this.#fd = openSync(folder, O_PATH | constants.O_DIRECTORY)
  }

  /** Of what is in the folder; any other path stays as it is. */
  path(file: string): string {
    return file.startsWith(this.#folder + sep) ? `${this.way}${file.slice(this.#folder.length)}` : file
  }

  get way(): string {
    return `/proc/self/fd/${this.#fd}`
  }

  close(): void {
    closeSync(this.#fd)
  }
}

let code: Door | null = null

/**
 * Lets a thread be started when this process is another user, wherever the tree lies. `view` becomes a folder that
 * looks like the tree, owned by that user.
 */
export function keepCode(view: string, user: number): void {
  rmSync(view, { recursive: true, force: true })
  mkdirSync(view)
  const about = join(view, 'package.json')
  copyFileSync(join(root, 'package.json'), about)
  chmodSync(about, 0o600)
  chownSync(about, user, user)
  for (const part of PARTS) symlinkSync(new Door(join(root, part)).way, join(view, part))
  chownSync(view, user, user)
  code = new Door(view)
}

/** How a thread is started now: its module, and options by which Node.js takes the links of the view as they are. */
export function lateThread(url: string): { readonly module: URL; readonly execArgv: string[] } {
  if (code === null) return { module: new URL(url), execArgv: [] }
  const module = pathToFileURL(join(code.way, relative(root, fileURLToPath(url))))
  return { module, execArgv: ['--preserve-symlinks', '--preserve-symlinks-main'] }
}

/** Whether every user of the machine may read a file, and get to it. */
export function isOpenToOthers(file: string): boolean {
  if ((statSync(file).mode & 0o004) === 0) return false
  for (let at = dirname(file); ; at = dirname(at)) {
    if ((statSync(at).mode & 0o001) === 0) return false
    if (at === dirname(at)) return true
  }
}
