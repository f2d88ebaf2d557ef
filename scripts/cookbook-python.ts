// The cookbook of data/README.md as a Python program.
import { assert } from '../src/lib/assert.ts'
import type { Recipe } from './cookbook.ts'

const HEAD = `"""The cookbook of data/README.md in Python: the same queries, run by DuckDB's package.

    pip install duckdb                                     # and pandas or polars, for .df() or .pl()
    python data/cookbook.py                                # every recipe on the sample, without a server
    python data/cookbook.py data/lake/catalog.duckdb       # on a lake, while its server runs
    python data/cookbook.py data/lake/catalog.duckdb Freshness

In a notebook, in this folder:

    from cookbook import open_lake, run
    frame = run(open_lake("lake/catalog.duckdb"), "Freshness").df()     # or .pl(), .arrow(), .fetchall()

Made by \`node scripts/cookbook.ts\` from data/README.md: edit the queries there. Every recipe was run with Python 3.11 and
duckdb 1.5.6 when this was written. The tests hold that the queries are those of the card, and run them in Python where its
package duckdb is installed.
"""
import pathlib
import sys

RECIPES = {
`

const TAIL = `}

ROOT = pathlib.Path(__file__).resolve().parent.parent


def open_sample(version=2):
    """A connection with the tables of the sample as views."""
    import duckdb

    connection = duckdb.connect()
    views = (ROOT / f"data/samples/v{version}/views.sql").read_text()
    connection.execute(views.replace("['data/", f"['{ROOT}/data/"))
    return connection


def open_lake(catalog):
    """A connection to a lake, by the path of its catalog; nothing is locked."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("ATTACH '" + str(catalog).replace("'", "''") + "' AS lake (READ_ONLY)")
    connection.execute("USE lake")
    return connection


def run(connection, title):
    """The result of a recipe: .fetchall(), .df(), .pl() and .arrow() read it."""
    return connection.execute(RECIPES[title])


def main(arguments):
    connection = open_lake(arguments[0]) if arguments else open_sample()
    for title in arguments[1:] or RECIPES:
        result = run(connection, title)
        print(f"\\n{title}\\n  " + " | ".join(column[0] for column in result.description))
        for row in result.fetchall():
            print("  " + " | ".join(str(value) for value in row))


if __name__ == "__main__":
    main(sys.argv[1:])
`

/** The text of data/cookbook.py. */
export function pythonCookbook(recipes: readonly Recipe[]): string {
  const entries = recipes.map(({ title, sql }) => {
    assert(!sql.includes('"""') && !title.includes('"'), 'titles and queries can stand in Python as they are')
    return `    "${title}": r"""\n${sql}""",\n`
  })
  return HEAD + entries.join('') + TAIL
}
