// The processors for which a release is made. For another than this machine's the native parts are cross-compiled by
// Debian's compiler, with Debian's libraries of that processor in a folder: nothing of it is installed or run here. With
// qemu-user installed, its Node.js runs to keep the compiled code of the bundle.
import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { NEEDED } from './debian.mjs'

export const hasCommand = name => spawnSync('sh', ['-c', `command -v ${name}`], { stdio: 'ignore' }).status === 0

/** By the name that Node.js has for a processor: Debian's, the compiler's, what `readelf -h` says, and an emulator. */
export const ARCHITECTURES = {
  x64: {
    debian: 'amd64',
    triplet: 'x86_64-linux-gnu',
    machine: 'Advanced Micro Devices X86-64',
    emulator: 'qemu-x86_64',
  },
  arm64: { debian: 'arm64', triplet: 'aarch64-linux-gnu', machine: 'AArch64', emulator: 'qemu-aarch64' },
}

/** Where a release for this processor lies. */
export const folderOf = arch => (arch === process.arch ? 'build/release' : `build/release-${arch}`)

/** What native parts need to be compiled, by Debian's names. */
const DEVELOPMENT = ['libopus-dev', 'libsoxr-dev', 'libspandsp-dev', 'libssl-dev']

const compilers = prefix => {
  const cached = hasCommand('ccache') ? 'ccache ' : ''
  return { CC: `${cached}${prefix}cc`, CXX: `${cached}${prefix}++` }
}

/**
 * How to compile for a processor: `env` and `words` for node-gyp, the command to strip, and the words before a program
 * of it; null when nothing here can run one.
 */
export function toolsFor(arch, work) {
  if (arch === process.arch) return { env: compilers('g'), words: [], strip: 'strip', runs: [] }
  const { triplet, debian, emulator } = ARCHITECTURES[arch]
  if (!hasCommand(`${triplet}-g++`)) throw new Error(`apt-get install g++-${triplet.replace('x86_64', 'x86-64')}`)
  const root = resolve(work, 'sysroot')
  const include = [...DEVELOPMENT, ...NEEDED.filter(name => name.startsWith('lib'))].join(',')
  const words = ['--quiet', '--variant=extract', `--architectures=${debian}`, `--include=${include}`]
  execFileSync('mmdebstrap', [...words, 'bookworm', root], { stdio: ['ignore', 'inherit', 'inherit'] })
  const libraries = join(root, 'usr/lib', triplet)
  // Of the C library the compiler has its own files. Those here name it by the paths of a running system, or are static.
  for (const name of readdirSync(libraries))
    if (/^(lib[cm]\.so|.*\.a|.*crt.*\.o)$/.test(name)) rmSync(join(libraries, name))
  const headers = [join(root, 'usr/include'), join(root, 'usr/include', triplet)].map(path => `-idirafter ${path}`)
  const env = {
    ...compilers(`${triplet}-g`),
    AR: `${triplet}-ar`,
    CFLAGS: headers.join(' '),
    CXXFLAGS: headers.join(' '),
    LDFLAGS: `-L${libraries} -Wl,-rpath-link,${libraries}`,
    PKG_CONFIG_LIBDIR: join(libraries, 'pkgconfig'),
    PKG_CONFIG_SYSROOT_DIR: root,
    PKG_CONFIG_SYSTEM_INCLUDE_PATH: join(root, 'usr/include'),
  }
  const runs = hasCommand(emulator) ? [emulator, '-L', root] : null
  return { env, words: [`--arch=${arch}`], strip: `${triplet}-strip`, runs }
}
