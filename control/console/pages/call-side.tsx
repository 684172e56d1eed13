import { counted } from '../../../core/domain/text/counted.ts'
import { type Item, offset, TURN_PARTS, type Turn } from '../lib/call-story.ts'
import { clockTime, words } from '../lib/format.ts'
import { factsOf } from '../lib/outcome.ts'
import type { CallEvent } from '../lib/types.ts'
import { Button, Card, CodeBox, Facts } from '../ui/basics.tsx'
import { Message } from './ladder.tsx'

/** What stands behind the chosen thing of the axis: the whole message, request, step or figures. */
export function Side({ item, onClose }: { item: Item; onClose: () => void }) {
  const { source } = item
  const lasted_ms = Math.round(item.to_ms - item.from_ms)
  const hint = `${clockTime(new Date(item.from_ms).toISOString())}${lasted_ms > 0 ? `, for ${offset(lasted_ms)}` : ''}`
  const close = (
    <Button small icon="cross" label="Close what was chosen" onClick={onClose}>
      Close
    </Button>
  )
  if (source.kind === 'sip')
    return (
      <aside class="stack" aria-label="What was chosen">
        <Message message={source.message} onCompare={false} actions={close} />
      </aside>
    )
  return (
    <aside aria-label="What was chosen">
      <Card title={item.label} hint={hint} actions={close}>
        {source.kind === 'event' && source.event.kind === 'http' && <Exchange event={source.event} />}
        {source.kind === 'event' && source.event.kind !== 'http' && (
          <CodeBox text={JSON.stringify(source.event.detail, null, 2)} what="the details" />
        )}
        {source.kind === 'turn' && <Facts rows={turnRows(source.turn)} />}
        {source.kind === 'quality' && (
          <Facts
            rows={[
              ['Leg', source.leg],
              ['Codec', source.stats.codec ?? '–'],
              ['MOS', source.stats.mos?.toFixed(2) ?? '–'],
              ['Jitter', source.stats.jitter_ms == null ? '–' : `${source.stats.jitter_ms.toFixed(1)} ms`],
              ['Lost so far', source.stats.packets_lost == null ? '–' : counted(source.stats.packets_lost, 'packet')],
              ['Round trip', source.stats.rtt_ms == null ? '–' : `${source.stats.rtt_ms.toFixed(1)} ms`],
            ]}
          />
        )}
        {source.kind === 'phase' && <p>The call was in this state {offset(lasted_ms)}.</p>}
      </Card>
    </aside>
  )
}

export const PART_NAMES: Readonly<Record<(typeof TURN_PARTS)[number], string>> = {
  detector: 'Detector of the end of speech',
  recognizer: 'Recogniser',
  customer: 'Application',
  voice: 'Voice',
  playout: 'Play-out',
}

const turnRows = ({ parts, total_ms }: Turn): [string, string][] => [
  ...TURN_PARTS.map((part): [string, string] => [PART_NAMES[part], `${parts[part]} ms`]),
  ['In all', `${total_ms} ms`],
]

function Exchange({ event: { detail, number } }: { event: CallEvent }) {
  const request = factsOf(detail['request'])
  const response = factsOf(detail['response'])
  const text = (value: unknown): string => (value == null || value === '' ? '–' : String(value))
  const body = text(response['response_body'])
  return (
    <>
      <Facts
        rows={[
          ['Request', `${text(request['method'])} ${text(request['url'])}`],
          ['Answer', text(response['response_code'] ?? response['error_message'])],
          ['Took', `${text(response['request_duration'])} ms`],
          ['Content type', text(response['content_type'])],
          number === null
            ? null
            : [
                'Error',
                <a key="e" href={`/docs/errors/${number}`} target="_blank" rel="noreferrer">
                  {number}
                </a>,
              ],
        ]}
      />
      <h3>Parameters</h3>
      <Facts
        rows={Object.entries(factsOf(request['parameters'])).map(
          ([name, value]) => [words(name), text(value)] as const,
        )}
      />
      {body !== '–' && (
        <>
          <h3>Body of the answer</h3>
          <CodeBox text={body} what="the body" />
        </>
      )}
    </>
  )
}
