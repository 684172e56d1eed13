import { signal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import { useData } from '../lib/data.ts'
import { go } from '../lib/router.ts'
import { may } from '../lib/session.ts'
import type { ListOf, TrunkSummary } from '../lib/types.ts'
import { Dialog } from './dialog.tsx'

/** A place to go to: its name, what it is, and its path below /console. */
interface Place {
  readonly text: string
  readonly what: string
  readonly to: string
}

export const paletteOpen = signal(false)
const MOST = 12

/** Ctrl-K, or Command-K, opens a field that finds pages, trunks, calls and numbers. */
export function Palette({ pages }: { pages: readonly Place[] }) {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return
      event.preventDefault()
      paletteOpen.value = !paletteOpen.value
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [])
  return paletteOpen.value ? <Finder pages={pages} /> : null
}

/** What a typed number or id leads to. */
function direct(text: string): readonly Place[] {
  if (/^CA[0-9a-f]{32}$/.test(text)) return [{ text, what: 'Call', to: `/calls/${text}` }]
  if (/^CA[0-9a-f]{4,}$/.test(text))
    return [{ text: `Calls that begin with ${text}`, what: 'Calls', to: `/calls?call_id=${text}` }]
  if (/^\+?[0-9]{4,15}$/.test(text))
    return [{ text: `Calls of ${text}`, what: 'Calls', to: `/calls?number=${encodeURIComponent(text)}` }]
  return []
}

function Finder({ pages }: { pages: readonly Place[] }) {
  const [text, setText] = useState('')
  const [chosen, setChosen] = useState(0)
  const trunks = useData<ListOf<TrunkSummary>>(may('service_configuration:read') ? '/v1/trunks' : null)
  const all = [
    ...pages,
    ...(trunks.data?.data ?? []).map(({ id, name }): Place => ({ text: name, what: 'Trunk', to: `/trunks/${id}` })),
  ]
  const wanted = text.trim().toLowerCase()
  const named = all.filter(place => place.text.toLowerCase().includes(wanted))
  const found = [...direct(text.trim()), ...named].slice(0, MOST)
  const close = () => {
    paletteOpen.value = false
  }
  const follow = (place: Place | undefined) => {
    if (!place) return
    close()
    go(place.to)
  }
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step === undefined) return
    event.preventDefault()
    setChosen(at => Math.max(0, Math.min(found.length - 1, at + step)))
  }
  return (
    <Dialog title="Go to" onClose={close}>
      <form
        onSubmit={event => {
          event.preventDefault()
          follow(found[chosen])
        }}
      >
        <input
          ref={element => element?.setAttribute('autofocus', '')}
          type="search"
          aria-label="Page, trunk, number or SID"
          placeholder="Page, trunk, number or SID"
          value={text}
          onInput={event => {
            setText(event.currentTarget.value)
            setChosen(0)
          }}
          onKeyDown={press}
        />
      </form>
      <ul class="finder">
        {found.map((place, at) => (
          <li key={place.what + place.to}>
            <button type="button" class={at === chosen ? 'chosen' : ''} onClick={() => follow(place)}>
              <span>{place.text}</span>
              <span class="muted small">{place.what}</span>
            </button>
          </li>
        ))}
      </ul>
      {found.length === 0 && <p class="muted">Nothing has this name.</p>}
    </Dialog>
  )
}
