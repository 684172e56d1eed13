import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { TREE } from '../../core/runtime/tree.ts'
import { PACKAGED, PLACES } from './places.ts'

/** How people type the command of this tree, and how they start its platform. */
interface Wording {
  readonly command: string
  readonly start: string
}

/** A release brings its own Node.js. Installed, it is a service with a command of its own; a checkout is neither. */
export function wordingOf(tree: string, is_release: boolean): Wording {
  if (!is_release) return { command: 'bin/strowger', start: 'npm start' }
  return tree === PACKAGED || dirname(tree) === PLACES.versions
    ? { command: 'strowger', start: 'systemctl start strowger' }
    : { command: 'bin/strowger', start: 'bin/strowger up' }
}

export const WORDING = wordingOf(TREE, existsSync(join(TREE, 'node/bin/node')))
