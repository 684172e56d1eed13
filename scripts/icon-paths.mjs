/** Shapes of SVG as data of a path: an icon that is one path is a fourth of the elements that a page makes. */
const SHAPES = {
  // A path that begins with a relative move begins at the origin, wherever the shape before it ended.
  path: ({ d }) => (d.startsWith('m') ? `M0 0${d}` : d),
  line: ({ x1, y1, x2, y2 }) => `M${x1} ${y1}L${x2} ${y2}`,
  polyline: ({ points }) => `M${points}`,
  polygon: ({ points }) => `M${points}Z`,
  circle: ({ cx, cy, r }) => `M${cx - r} ${cy}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`,
  rect: ({ x = 0, y = 0, width, height, rx = 0, ry = rx }) => {
    const [across, down] = [width - 2 * rx, height - 2 * ry]
    const corner = (dx, dy) => (Number(rx) === 0 ? '' : `a${rx} ${ry} 0 0 1 ${dx} ${dy}`)
    return (
      `M${Number(x) + Number(rx)} ${y}h${across}${corner(rx, ry)}v${down}${corner(-rx, ry)}` +
      `h${-across}${corner(-rx, -ry)}v${-down}${corner(rx, -ry)}Z`
    )
  },
}

/** Returns the icon of a module of Lucide as the data of one path. @throws for a shape that is not known here */
export function pathOf(icon) {
  return icon
    .map(([tag, attributes]) => {
      const draw = SHAPES[tag]
      if (!draw) throw new Error(`icons: a ${tag} is not drawn as a path yet`)
      return draw(attributes)
    })
    .join('')
}
