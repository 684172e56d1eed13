import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  copyFileSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { builtModule, TREE } from './tree.ts'

/** Flag of open(2) that Node.js does not name. With it, the folder need not be readable. */
const O_PATH = 0o10000000
/** Name of the media worker's `view`, in the run folder. */
export const MEDIA_CODE = 'media-code'
/** Parts of the tree that are loaded after the start: our code, its packages, the addon. */
const PARTS = ['build', 'node_modules', 'native']

/**
 * A folder that this process can still reach after it changes users, even when the new user may not pass through the
 * parent folders. Paths go through an open descriptor.
 */
export class Door {
  readonly #folder: string
  readonly #fd: number

  constructor(folder: string) {
    this.#folder = resolve(folder)
    this.#fd = openSync(folder, O_PATH | constants.O_DIRECTORY)
  }

  /** Returns the path of a file in the folder through the descriptor. Other paths are returned unchanged. */
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
 * Makes it possible to start threads after this process has changed users, wherever the tree lies. Creates `view`, a
 * folder of links that looks like the tree and belongs to that user.
 */
export function keepCode(view: string, user: number): void {
  // The folder stays: what confines this process allows this one, and not another of the same name.
  mkdirSync(view, { recursive: true })
  for (const left of readdirSync(view)) rmSync(join(view, left), { recursive: true })
  const about = join(view, 'package.json')
  copyFileSync(join(TREE, 'package.json'), about)
  chmodSync(about, 0o600)
  chownSync(about, user, user)
  for (const part of PARTS) symlinkSync(new Door(join(TREE, part)).way, join(view, part))
  chownSync(view, user, user)
  code = new Door(view)
}

/** Returns how to start a thread now: its module, and options that make Node.js keep the links of the view. */
export function lateThread(path: string): { readonly module: string; readonly execArgv: string[] } {
  const built = builtModule(path)
  if (code === null) return { module: built, execArgv: [] }
  const module = join(code.way, relative(TREE, built))
  return { module, execArgv: ['--preserve-symlinks', '--preserve-symlinks-main'] }
}

/** Reports whether every user of the machine can reach and read a file. */
export function isOpenToOthers(file: string): boolean {
  if ((statSync(file).mode & 0o004) === 0) return false
  for (let at = dirname(file); ; at = dirname(at)) {
    if ((statSync(at).mode & 0o001) === 0) return false
    if (at === dirname(at)) return true
  }
}
