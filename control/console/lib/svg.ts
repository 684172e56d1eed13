const DRAWN = 'text, line, path, rect, circle'
const INVISIBLE = 'rgba(0, 0, 0, 0)'

/** Returns a drawing as a file of its own: with the colours that the page computes, so that it looks like the page. */
export function standaloneSvg(svg: SVGSVGElement): Blob {
  const copy = svg.cloneNode(true) as SVGSVGElement
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg')
  copy.setAttribute('font-family', 'sans-serif')
  copy.setAttribute('font-size', getComputedStyle(svg).fontSize)
  const from = svg.querySelectorAll(DRAWN)
  for (const [index, element] of copy.querySelectorAll(DRAWN).entries()) {
    const original = from[index]
    if (!original) continue
    const { fill, stroke, opacity, fontSize, fontWeight } = getComputedStyle(original)
    for (const [name, color] of [
      ['fill', fill],
      ['stroke', stroke],
    ] as const)
      element.setAttribute(name, color === INVISIBLE ? 'none' : color)
    if (opacity !== '1') element.setAttribute('opacity', opacity)
    if (element.tagName !== 'text') continue
    element.setAttribute('font-size', fontSize)
    element.setAttribute('font-weight', fontWeight)
  }
  return new Blob([new XMLSerializer().serializeToString(copy)], { type: 'image/svg+xml' })
}
