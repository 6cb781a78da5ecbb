// A plain text table: first column left, the others right.
export function printTable(head, rows) {
  const table = [head, ...rows].map((row) => row.map(String))
  const widths = head.map((_, column) => Math.max(...table.map((row) => row[column].length)))
  for (const row of table) {
    const cells = row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column])))
    console.log(cells.join('   ').trimEnd())
  }
}

export function seconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`
}
