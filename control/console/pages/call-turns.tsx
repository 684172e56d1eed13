import { offset, TURN_PARTS, type Turn } from '../lib/call-story.ts'
import { Card } from '../ui/basics.tsx'
import { PART_NAMES } from './call-side.tsx'

const SHOWN = 100

/** How long callers waited for the agent, turn by turn, and for whom. */
export function Turns({ turns }: { turns: readonly Turn[] }) {
  const longest = turns.reduce((most, { total_ms }) => Math.max(most, total_ms), 1)
  const sorted = turns.map(({ total_ms }) => total_ms).toSorted((a, b) => a - b)
  const middle = sorted[Math.floor(sorted.length / 2)] ?? 0
  return (
    <Card
      title="Turns of the agent"
      hint={`From the end of the caller's speech to the first sound of the answer: ${middle} ms in the middle, ${longest} ms at most.`}
    >
      <div class="chart-legend">
        {TURN_PARTS.map(part => (
          <span key={part}>
            <i class={`part ${part}`} />
            {PART_NAMES[part]}
          </span>
        ))}
      </div>
      <div class="turns">
        {turns.slice(0, SHOWN).map((turn, index) => (
          <>
            <span class="muted small">{index + 1}</span>
            <span
              class="bar"
              role="img"
              aria-label={TURN_PARTS.map(part => `${PART_NAMES[part]} ${turn.parts[part]} ms`).join(', ')}
            >
              {TURN_PARTS.map(part => (
                <i
                  key={part}
                  class={`part ${part}`}
                  title={`${PART_NAMES[part]}: ${turn.parts[part]} ms`}
                  style={{ width: `${(turn.parts[part] / longest) * 100}%` }}
                />
              ))}
            </span>
            <span class="num small">{offset(turn.total_ms)}</span>
          </>
        ))}
      </div>
    </Card>
  )
}
