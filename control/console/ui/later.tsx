import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { inTurn } from '../lib/idle.ts'

/** A part of a page that is drawn when the page is idle, after what stands above it. */
export function Later({ children }: { children: ComponentChildren }) {
  const [ready, setReady] = useState(false)
  useEffect(() => {
    let here = true
    void inTurn().then(() => here && setReady(true))
    return () => {
      here = false
    }
  }, [])
  return ready ? children : <output class="loading" aria-label="Loading" />
}
