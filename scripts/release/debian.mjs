// The Debian package of a release: the tree below /usr/lib, the unit, the settings and the scripts of packaging/.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { bytesBelow } from './contents.mjs'

/** Debian packages that a release needs to run (Debian 12), and those without which only a part is missing. */
export const NEEDED = [
  'adduser',
  'libc6',
  'libopus0',
  'libsoxr0',
  'libspandsp2',
  'libssl3',
  'libstdc++6',
  'openssl',
  'util-linux',
]
export const RECOMMENDED = ['espeak-ng']

const control = ({ version, architecture }, installed_kib) => `Package: strowger
Version: ${version}
Architecture: ${architecture}
Maintainer: Strowger <strowger@localhost>
Installed-Size: ${installed_kib}
Depends: ${NEEDED.join(', ')}
Recommends: ${RECOMMENDED.join(', ')}
Suggests: libbcg729-0
Section: comm
Priority: optional
Description: SIP trunking and programmable voice
 Strowger connects SIP trunks, carriers and voice applications, with ceilings,
 prices, recordings and a web console. It brings its own Node.js.
`

/** Makes the package from the staged tree, which it moves. Returns the path of the .deb. */
export function makePackage({ tree, out, work, version, architecture, normalize }) {
  const root = join(work, 'deb')
  const put = (from, to) => {
    mkdirSync(dirname(join(root, to)), { recursive: true })
    cpSync(from, join(root, to), { recursive: true })
  }
  mkdirSync(join(root, 'usr/lib'), { recursive: true })
  renameSync(tree, join(root, 'usr/lib/strowger'))
  const own = join(root, 'usr/lib/strowger')
  put(join(own, 'docs'), 'usr/share/doc/strowger')
  for (const name of ['README.md', 'CHANGELOG.md', 'SECURITY.md'])
    put(join(own, name), `usr/share/doc/strowger/${name}`)
  put(join(own, 'LICENSE'), 'usr/share/doc/strowger/copyright')
  for (const name of ['docs', 'packaging']) rmSync(join(own, name), { recursive: true })
  put('packaging/debian/strowger', 'usr/bin/strowger')
  put('packaging/systemd/strowger.service', 'lib/systemd/system/strowger.service')
  put('packaging/strowger.env', 'etc/strowger/strowger.env')
  const size = Math.ceil(bytesBelow(root) / 1024)
  for (const name of ['postinst', 'prerm', 'postrm']) put(join('packaging/debian', name), `DEBIAN/${name}`)
  writeFileSync(join(root, 'DEBIAN/control'), control({ version, architecture }, size))
  writeFileSync(join(root, 'DEBIAN/conffiles'), '/etc/strowger/strowger.env\n')
  normalize(root)
  const deb = join(out, `strowger_${version}_${architecture}.deb`)
  const words = ['--root-owner-group', '-Zzstd', '-z9', '--threads-max=1', '--build', root, deb]
  execFileSync('dpkg-deb', words, { stdio: ['ignore', 'ignore', 'inherit'] })
  cpSync(join(own, 'sbom.cdx.json'), join(out, 'sbom.cdx.json'))
  return deb
}
