// Where the nodes of a run's graph go. Pure, and a function of the graph alone: it does not move while the run goes on.
//
// A layered layout: what comes later stands further along. A loop or a switch is a block that is laid out by itself,
// its own node first and its body behind it, and stands among the others as one piece; so no foreign node ever lies
// inside its frame.

export const NODE = { width: 184, height: 52 };
const SMALL = { width: 148, height: 40 }; // switches and loops
const GAP = { along: 48, across: 20 };
const PAD = { side: 14, top: 14, loop: 26 }; // a loop's frame has room for the way back
const EDGE = { along: 2, across: 2 }; // so that no stroke is cut
const BEND = { along: 0, across: 10 }; // the place that a long edge takes among the nodes it passes

/**
 * {width, height, nodes: [{...node, x, y, width, height}], frames: [{id, kind, depth, x, y, width, height}],
 *  edges: [{from, to, label, points: [[x, y], ...]}]}; `isDown` lays it from top to bottom instead of left to right.
 */
export function layout(graph, { isDown = false } = {}) {
  const plan = new Plan(graph, isDown);
  const whole = plan.block(null, 0);
  const { nodes, frames, bends } = plan.placed(whole);
  return {
    width: whole.size.width, height: whole.size.height, nodes: [...nodes.values()], frames,
    edges: plan.edges.map((edge) => ({ ...edge, points: pointsOf(edge, nodes, bends, isDown) })),
  };
}

class Plan {
  constructor(graph, isDown) {
    this.isDown = isDown;
    this.byId = new Map(graph.nodes.map((node) => [node.id, node]));
    this.children = new Map();
    for (const node of this.byId.values()) {
      const parent = this.parentOf(node.id);
      if (!this.children.has(parent)) this.children.set(parent, []);
      this.children.get(parent).push(node.id);
    }
    const isKnown = ([from, to]) => this.byId.has(from) && this.byId.has(to) && from !== to;
    this.edges = graph.edges.filter(isKnown).map(([from, to, label = null]) => ({ from, to, label }));
  }

  parentOf(id) {
    const parent = this.byId.get(id).parent;
    return parent !== undefined && parent !== id && this.byId.has(parent) ? parent : null;
  }

  /** The piece of this level that holds the node: itself, or the block around it; null if it is outside. */
  pieceAt(id, level) {
    for (let at = id, steps = 0; at !== null && steps < 1000; at = this.parentOf(at), steps += 1) {
      if (this.parentOf(at) === level && at !== level) return at;
    }
    return null;
  }

  /** Lay out what is inside `owner` (null: everything). Positions are relative to the block's corner. */
  block(owner, depth) {
    const pieces = new Map();
    for (const id of this.children.get(owner) ?? []) {
      pieces.set(id, this.children.has(id) ? this.block(id, depth + 1) : this.leaf(id));
    }
    if (owner !== null) pieces.set(owner, this.leaf(owner)); // its own node stands before its body
    const links = this.linksAt(owner, pieces);
    const columns = inColumns(pieces, links);
    return { owner, depth, ...this.arranged(columns, pieces, owner) };
  }

  leaf(id) {
    return { owner: id, size: this.byId.get(id).kind === "task" ? NODE : SMALL, at: null };
  }

  /** What is linked at this level, each pair once with all its edges; `to` is null for those that leave the block. */
  linksAt(owner, pieces) {
    const links = new Map();
    for (const edge of this.edges) {
      const from = edge.from === owner ? owner : this.pieceAt(edge.from, owner);
      const to = edge.to === owner ? owner : this.pieceAt(edge.to, owner);
      if (from === null || from === to || !pieces.has(from)) continue;
      const key = JSON.stringify([from, to]);
      if (!links.has(key)) links.set(key, { from, to, edges: [] });
      links.get(key).edges.push(edge);
    }
    return [...links.values()];
  }

  along(size) {
    return this.isDown ? size.height : size.width;
  }

  across(size) {
    return this.isDown ? size.width : size.height;
  }

  arranged(columns, pieces, owner) {
    const sizeOf = (item) => (item.bend ? null : pieces.get(item.id).size);
    const length = (item) => (item.bend ? BEND.along : this.along(sizeOf(item)));
    const breadth = (item) => (item.bend ? BEND.across : this.across(sizeOf(item)));
    const total = (column) => column.reduce((sum, item) => sum + breadth(item), 0) + GAP.across * (column.length - 1);
    const widest = Math.max(0, ...columns.map(total));
    const { before, after } = this.margins(owner);
    const at = new Map();
    let along = before.along;
    for (const column of columns) {
      const depth = Math.max(0, ...column.map(length));
      let across = before.across + (widest - total(column)) / 2;
      for (const item of column) {
        at.set(item, this.point(along + (depth - length(item)) / 2, across));
        // straight past the nodes of its column, and curved only between columns
        if (item.bend) item.way = [along, along + depth].map((each) => this.point(each, across + breadth(item) / 2));
        across += breadth(item) + GAP.across;
      }
      along += depth + GAP.along;
    }
    const whole = this.point(along - GAP.along + after.along, widest + before.across + after.across);
    return { at, pieces, columns, size: { width: whole[0], height: whole[1] } };
  }

  margins(owner) {
    if (owner === null) return { before: EDGE, after: EDGE };
    const isLoop = this.byId.get(owner).kind === "loop";
    return {
      before: { along: PAD.side, across: PAD.top },
      after: { along: PAD.side, across: isLoop ? PAD.loop : PAD.top },
    };
  }

  point(along, across) {
    return this.isDown ? [across, along] : [along, across];
  }

  /** Every node, frame and bend of a block with its place on the drawing. */
  placed(block, origin = [0, 0], found = { nodes: new Map(), frames: [], bends: new Map() }) {
    for (const [item, [x, y]] of block.at) {
      const place = [origin[0] + x, origin[1] + y];
      if (item.bend) {
        const way = item.way.map(([wx, wy]) => [origin[0] + wx, origin[1] + wy]);
        for (const edge of item.edges) found.bends.set(edge, [...(found.bends.get(edge) ?? []), ...way]);
        continue;
      }
      const piece = block.pieces.get(item.id);
      const box = { x: place[0], y: place[1], ...piece.size };
      const node = this.byId.get(item.id);
      if (piece.at === null) found.nodes.set(item.id, { ...node, ...box });
      else {
        found.frames.push({ id: item.id, kind: node.kind, depth: piece.depth, ...box });
        this.placed(piece, place, found);
      }
    }
    return found;
  }
}

/** Pieces by how many stand before them, with a bend in every column that a link passes; neighbours near each other. */
function inColumns(pieces, links) {
  const level = levels(pieces, links);
  const columns = [];
  const put = (n, item) => {
    columns[n] ??= [];
    columns[n].push(item);
    return item;
  };
  const items = new Map();
  for (const id of pieces.keys()) items.set(id, put(level.get(id), { id, bend: false, near: [] }));
  const end = columns.length;
  for (const { from, to, edges } of links) {
    let last = items.get(from);
    const until = to === null ? end : level.get(to);
    for (let n = level.get(from) + 1; n < until; n += 1) last = joined(last, put(n, { bend: true, edges, near: [] }));
    if (to !== null) joined(last, items.get(to));
  }
  const whole = columns.filter(Boolean);
  untangle(whole);
  return whole;
}

function joined(a, b) {
  a.near.push(b);
  b.near.push(a);
  return b;
}

/** The longest way to each piece. A cycle, which no flow has, is cut where it closes. */
function levels(pieces, links) {
  const into = new Map([...pieces.keys()].map((id) => [id, []]));
  for (const { from, to } of links) if (to !== null) into.get(to).push(from);
  const level = new Map();
  const open = new Set();
  for (const start of pieces.keys()) {
    const stack = [start];
    while (stack.length > 0) {
      const id = stack.at(-1);
      open.add(id);
      const next = into.get(id).find((each) => !level.has(each) && !open.has(each));
      if (next !== undefined && !level.has(id)) {
        stack.push(next);
        continue;
      }
      if (!level.has(id)) level.set(id, Math.max(-1, ...into.get(id).map((each) => level.get(each) ?? -1)) + 1);
      open.delete(id);
      stack.pop();
    }
  }
  return level;
}

/** Order each column by where its neighbours stand, a few times to and fro. */
function untangle(columns) {
  const number = (column) => column.forEach((item, n) => (item.rank = n - (column.length - 1) / 2));
  columns.forEach(number);
  for (let round = 0; round < 6; round += 1) {
    const sweep = round % 2 === 0 ? columns : [...columns].reverse();
    for (const column of sweep) {
      const wish = new Map(column.map((item) => [item, mean(item.near.map((each) => each.rank), item.rank)]));
      column.sort((a, b) => wish.get(a) - wish.get(b) || a.rank - b.rank);
      number(column);
    }
  }
}

function mean(numbers, otherwise) {
  return numbers.length === 0 ? otherwise : numbers.reduce((sum, n) => sum + n, 0) / numbers.length;
}

function pointsOf(edge, nodes, bends, isDown) {
  const from = nodes.get(edge.from);
  const to = nodes.get(edge.to);
  const middle = (box) => [box.x + box.width / 2, box.y + box.height / 2];
  const start = isDown ? [middle(from)[0], from.y + from.height] : [from.x + from.width, middle(from)[1]];
  const end = isDown ? [middle(to)[0], to.y] : [to.x, middle(to)[1]];
  const main = isDown ? 1 : 0;
  const way = (bends.get(edge) ?? []).filter((each) => each[main] > start[main] && each[main] < end[main]);
  return [start, ...way.sort((a, b) => a[main] - b[main]), end];
}
