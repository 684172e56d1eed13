import { connect } from 'node:net'
import { missingContacts } from '../core/domain/network/contacts.ts'
import type { Config, Settings } from '../core/runtime/config.ts'
import { newId } from '../core/runtime/ids.ts'
import { servedAt } from '../core/runtime/sip/own-listeners.ts'
import { FrameReader, frame } from '../signaling/edge/control/framing.ts'
import type { Finding } from './doctor-store.ts'

const LIMIT_MS = 3000
const ANSWER_BYTES = 64 * 1024

/** Checks that a drachtio-server answers, accepts our secret, and listens on the addresses that peers use. */
export async function examineDrachtio(config: Settings, limit_ms = LIMIT_MS): Promise<Finding | null> {
  const { drachtio, drachtio_secret: secret } = config
  if (!drachtio) return null
  const what = `drachtio-server at ${drachtio.host}:${drachtio.port} answers, and listens where peers call`
  const wrong = (mend: string): Finding => ({ what, ok: false, mend })
  try {
    const [verdict, answer = '', version = ''] = await greet(drachtio, secret, limit_ms)
    if (verdict !== 'OK')
      return wrong(`it rejects our secret (${answer}): STROWGER_DRACHTIO_SECRET must be its --secret`)
    const missing = missingContacts(answer, servedAt(config))
    if (missing.length === 0) return { what: `${what} (${version})`, ok: true, mend: '' }
    return wrong(`start it with a --contact for ${missing.join(', ')}, as docs/drachtio.md says; it has ${answer}`)
  } catch (error) {
    if (error instanceof Silent) return wrong('it accepts the connection but does not answer: check it, and restart it')
    const why = error instanceof Error ? error.message : String(error)
    return wrong(`it cannot be reached (${why}): start it, or set STROWGER_DRACHTIO`)
  }
}

/** Reports exports that only the embedded edge supports. */
export const examineExports = ({ hep }: Pick<Config, 'hep'>): Finding[] =>
  hep
    ? [
        {
          what: 'STROWGER_HEP exports SIP messages',
          ok: false,
          mend: 'the embedded edge exports them, a drachtio-server does by its own --homer and --homer-id: unset STROWGER_HEP',
        },
      ]
    : []

class Silent extends Error {}

/** Authenticates and returns the fields of the server's response, from the verdict on. */
function greet(at: { host: string; port: number }, secret: string, limit_ms: number): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const socket = connect(at.port, at.host)
    const reader = new FrameReader(ANSWER_BYTES)
    const end = (act: () => void): void => {
      clearTimeout(late)
      socket.destroy()
      act()
    }
    const late = setTimeout(() => {
      const error = socket.connecting ? new Error(`no connection within ${limit_ms / 1000} s`) : new Silent()
      end(() => reject(error))
    }, limit_ms)
    socket.on('connect', () => socket.write(frame(`${newId.uuid()}|authenticate|${secret}|`), 'latin1'))
    socket.on('data', chunk => {
      for (const payload of reader.push(chunk.toString('latin1'))) {
        const fields = payload?.split('|') ?? []
        if (fields[1] === 'response') end(() => resolve(fields.slice(3)))
        else end(() => reject(new Error('what answers there is no drachtio-server')))
        return
      }
    })
    socket.on('error', error => end(() => reject(error)))
    socket.on('close', () => end(() => reject(new Error('it closes the connection'))))
  })
}
