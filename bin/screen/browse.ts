import { visible } from '../../core/domain/text/visible.ts'
import { fitted } from '../fit.ts'
import { BEGUN, keysIn, listScreen, openScreen, pressed, rowsShown, type Size, type View } from './browsing.ts'

/** Whether a person sits before this process: what they see and press is ours. */
export const hasScreen = (): boolean => process.stdin.isTTY === true && process.stdout.isTTY === true

interface Options<Row> {
  /** The list as it is now. */
  readonly look: () => Promise<View<Row>>
  /** Looks again after this time; null: the list stays. */
  readonly every_ms: number | null
  /** The text of a row that a person opens. */
  readonly opened: (row: Row) => Promise<string>
}

/** DEC private modes: the alternate screen, and the cursor. */
const ENTER = '\u001b[?1049h\u001b[?25l'
const LEAVE = '\u001b[?25h\u001b[?1049l'

/** Lets a person look through a list until they leave it. The terminal is as before afterwards, whatever happens. */
export async function browse<Row>({ look, every_ms, opened }: Options<Row>): Promise<void> {
  const { stdin, stdout } = process
  const size = (): Size => ({ columns: stdout.columns, lines: stdout.rows })
  let view = await look()
  let now = BEGUN
  let text = ''
  let over = false
  const draw = (): void => {
    const lines =
      now.open === null
        ? listScreen(view, now, size())
        : openScreen(fitted(visible(text), size().columns).split('\n'), now.open, size())
    stdout.write(Buffer.from(`\u001b[H${lines.map(line => `${line}\u001b[K`).join('\r\n')}\u001b[J`))
  }
  stdin.setRawMode(true)
  stdout.write(Buffer.from(ENTER))
  try {
    await new Promise<void>((resolve, reject) => {
      const press = async (key: string): Promise<void> => {
        const next = pressed(now, key, view, rowsShown(view, size()))
        if (next === null) return resolve()
        const row = next.open === null ? undefined : view.rows.find(one => view.key(one) === next.chosen)
        if (now.open === null && row !== undefined) text = await opened(row)
        now = next
        draw()
      }
      let pressing = Promise.resolve()
      stdin.on('data', (sent: Buffer) => {
        for (const key of keysIn(sent.toString('utf8'))) pressing = pressing.then(() => press(key)).catch(reject)
      })
      stdin.once('end', () => resolve())
      for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve())
      stdout.on('resize', draw)
      if (every_ms !== null) looking(every_ms)
      draw()

      function looking(period_ms: number): void {
        setTimeout(() => {
          if (over) return
          look().then(found => {
            if (over) return
            view = found
            draw()
            looking(period_ms)
          }, reject)
        }, period_ms).unref()
      }
    })
  } finally {
    over = true
    stdout.write(Buffer.from(LEAVE))
    stdin.setRawMode(false)
    stdin.pause()
  }
}
