import type { ComponentChildren } from 'preact'
import { useMemo, useRef, useState } from 'preact/hooks'
import { counted } from '../../../core/domain/text/counted.ts'
import type { CallLadder } from '../lib/api-types.ts'
import { useData } from '../lib/data.ts'
import { clockTime } from '../lib/format.ts'
import { saveAs } from '../lib/save-as.ts'
import { diffLines, isNoise, type Lane, labelOf, lanesOf, parseSip } from '../lib/sip.ts'
import { standaloneSvg } from '../lib/svg.ts'
import type { LadderMessage } from '../lib/types.ts'
import { Button, Card, CopyButton, Empty, Loaded, ScrollBox } from '../ui/basics.tsx'
import { CheckField } from '../ui/form.tsx'

const TOP = 58
const STEP = 38
const LEFT = 108
const LANE = 250

export function Ladder({ call_id, live }: { call_id: string; live: boolean }) {
  const of = useData<CallLadder>(`/v1/calls/${call_id}/ladder`, { poll_ms: live ? 2500 : 8000 })
  return (
    <Loaded of={of}>
      {answer =>
        answer.messages.length === 0 ? (
          <Card flush>
            {answer.unavailable === null ? (
              <Empty title="No message yet">
                Messages appear some seconds after they were sent, and are kept {counted(answer.retention_days, 'day')}.
                A call of the API that never reached the network has none.
              </Empty>
            ) : (
              <Empty title="Not available">{answer.unavailable}</Empty>
            )}
          </Card>
        ) : (
          <Drawn answer={answer} call_id={call_id} />
        )
      }
    </Loaded>
  )
}

function Drawn({ answer, call_id }: { answer: CallLadder; call_id: string }) {
  const [noise, setNoise] = useState(false)
  const [opened, setOpened] = useState<number | null>(null)
  const [other, setOther] = useState<number | null>(null)
  const messages = useMemo(() => answer.messages.filter(message => noise || !isNoise(message)), [answer, noise])
  const lanes = useMemo(() => lanesOf(messages), [messages])
  const svg = useRef<SVGSVGElement>(null)
  const choose = (index: number, second: boolean) => {
    if (second && opened !== null && opened !== index) setOther(index)
    else {
      setOpened(index)
      setOther(null)
    }
  }
  const one = opened === null ? undefined : messages[opened]
  const two = other === null ? undefined : messages[other]
  const exportSvg = () => {
    if (svg.current) saveAs(standaloneSvg(svg.current), `${call_id}.svg`)
  }
  return (
    <>
      <Card
        title="SIP messages"
        hint="Choose a message to read it; choose another with Shift to compare both. Arrow keys go from one to the next."
        actions={
          <>
            <Button
              small
              icon="download"
              onClick={() => saveAs(new Blob([answer.text], { type: 'text/plain' }), `${call_id}.txt`)}
            >
              Text
            </Button>
            <Button small icon="download" onClick={exportSvg}>
              SVG
            </Button>
          </>
        }
        foot={`${counted(answer.messages.length, 'message')}, kept ${counted(answer.retention_days, 'day')}`}
      >
        <Drawing svg={svg} messages={messages} lanes={lanes} opened={opened} other={other} onChoose={choose} />
        <CheckField label="Show keep-alives and registrations" checked={noise} onInput={setNoise} />
      </Card>
      {one && !two && <Message message={one} onCompare={messages.length > 1} />}
      {one && two && <Compared left={one} right={two} />}
    </>
  )
}

interface DrawingProps {
  readonly svg: { current: SVGSVGElement | null }
  readonly messages: readonly LadderMessage[]
  readonly lanes: readonly Lane[]
  readonly opened: number | null
  readonly other: number | null
  readonly onChoose: (index: number, second: boolean) => void
}

function Drawing({ svg, messages, lanes, opened, other, onChoose }: DrawingProps) {
  const width = LEFT + lanes.length * LANE
  const height = TOP + messages.length * STEP + 20
  const xOf = (id: string): number =>
    LEFT +
    LANE / 2 +
    Math.max(
      0,
      lanes.findIndex(lane => lane.id === id),
    ) *
      LANE
  const firstDialog = messages[0]?.sip_call_id
  const begin = Date.parse(messages[0]?.at ?? '')
  const onKey = (event: KeyboardEvent, index: number) => {
    const by = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key]
    if (by !== undefined) {
      event.preventDefault()
      const next = svg.current?.querySelectorAll<SVGGElement>('.message')[index + by]
      next?.focus()
    } else if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault()
      onChoose(index, event.shiftKey)
    }
  }
  return (
    <ScrollBox label="Ladder of SIP messages" kind="ladder">
      {/* biome-ignore lint/a11y/useSemanticElements: SVG has no element for a group with a name. */}
      <svg ref={svg} width={width} height={height} role="group" aria-label="Messages in their order">
        {lanes.map(lane => (
          <g key={lane.id}>
            <text class="lane-name" x={xOf(lane.id)} y={22} text-anchor="middle">
              {lane.name}
            </text>
            <text class="lane-sub" x={xOf(lane.id)} y={38} text-anchor="middle">
              {lane.sub}
            </text>
            <line class="lane" x1={xOf(lane.id)} x2={xOf(lane.id)} y1={46} y2={height - 8} />
          </g>
        ))}
        {messages.map((message, index) => {
          const y = TOP + index * STEP + 22
          const peer = xOf(message.remote)
          const us = xOf('')
          const [from, to] = message.direction === 'in' ? [peer, us] : [us, peer]
          const { label, tone } = labelOf(message.text)
          const head = to > from ? -1 : 1
          const chosen = index === opened || index === other
          return (
            // biome-ignore lint/a11y/useSemanticElements: SVG has no button element.
            <g
              key={`${message.at}${index}`}
              class={`message ${tone} ${message.sip_call_id === firstDialog ? '' : 'second'} ${chosen ? 'chosen' : ''}`}
              role="button"
              tabindex={0}
              aria-pressed={chosen}
              onClick={event => onChoose(index, event.shiftKey)}
              onKeyDown={event => onKey(event, index)}
            >
              <title>{`${label}, ${message.direction === 'in' ? 'from' : 'to'} ${message.remote}, ${clockTime(message.at)}${message.retransmission ? ', sent again' : ''}`}</title>
              <rect x={1} y={y - 23} width={width - 2} height={STEP - 2} rx={4} />
              <text class="time" x={10} y={y - 2}>
                {index === 0 ? clockTime(message.at) : `+${((Date.parse(message.at) - begin) / 1000).toFixed(3)} s`}
              </text>
              <text x={(from + to) / 2} y={y - 6} text-anchor="middle">
                {label}
                {message.retransmission ? ' (again)' : ''}
              </text>
              <line
                x1={from}
                x2={to + head * 5}
                y1={y}
                y2={y}
                stroke-width={1.6}
                stroke-dasharray={message.retransmission ? '5 4' : undefined}
              />
              <path d={`M${to} ${y}l${head * 9} -4.5v9z`} stroke="none" />
            </g>
          )
        })}
      </svg>
    </ScrollBox>
  )
}

/** A message with its headers and body. */
export const Message = ({
  message,
  onCompare,
  actions,
}: {
  message: LadderMessage
  /** Another message may be compared with it. */
  onCompare: boolean
  actions?: ComponentChildren
}) => {
  const { first, headers, body } = parseSip(message.text)
  const { local, remote } = message
  return (
    <Card
      title={labelOf(message.text).label}
      hint={[
        message.protocol.toUpperCase(),
        message.direction === 'in' ? `${remote} → ${local}` : `${local} → ${remote}`,
        clockTime(message.at),
        ...(onCompare ? ['Shift and another message compares'] : []),
      ].join(' · ')}
      actions={
        <>
          <CopyButton text={message.text} what="the message" />
          {actions}
        </>
      }
    >
      <ScrollBox label="The message" kind="code sip">
        <pre data-message>
          <span class="first">{first}</span>
          {'\n'}
          {headers.map(([name, value], index) => (
            <span key={index}>
              <span class="h">{name}</span>: {value}
              {'\n'}
            </span>
          ))}
          {body && (
            <>
              {'\n'}
              <span class="sdp">{body}</span>
            </>
          )}
        </pre>
      </ScrollBox>
    </Card>
  )
}

const Compared = ({ left, right }: { left: LadderMessage; right: LadderMessage }) => (
  <Card
    title={`${labelOf(left.text).label} compared with ${labelOf(right.text).label}`}
    hint="− only in the first, + only in the second"
  >
    <section class="diff" aria-label="Differences">
      {diffLines(left.text, right.text).map(({ mark, line }, index) => (
        <div key={index} class={mark === '-' ? 'minus' : mark === '+' ? 'plus' : ''}>
          {mark} {line}
        </div>
      ))}
    </section>
  </Card>
)
