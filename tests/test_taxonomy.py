"""Label trees against plain walks from leaf to root, and every tree that cannot be one refused."""

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest

from lib.errors import InputError
from lib.taxonomy import Taxonomy, from_dag, from_nested, from_paths, from_yaml

BREAST = {
    "benign": ["adenosis", "fibroadenoma", "phyllodes_tumor", "tubular_adenoma"],
    "malignant": ["ductal_carcinoma", "lobular_carcinoma", "mucinous_carcinoma", "papillary_carcinoma"],
}
UNEVEN = {"a": {"aa": ["aaa", "aab"], "ab": None}, "b": ["ba", "bb"], "c": None}
TREES = [from_nested("breast", BREAST), from_nested("uneven", UNEVEN), from_nested("flat", ["x", "y", "z"])]


def way_up(tree, node):
    way = [node]
    while way[-1] != "root":
        way.append(tree.parents[way[-1]])
    return way


def common_depth(tree, one, other):
    meeting = next(node for node in way_up(tree, one) if node in way_up(tree, other))
    return len(way_up(tree, meeting)) - 1


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_every_matrix_equals_a_walk_from_leaf_to_root(tree):
    lca, rho, distance = tree.lca_depth(), tree.rho(), tree.distance()
    longest = max(len(way_up(tree, leaf)) - 1 for leaf in tree.leaves)
    assert tree.depth == longest
    for (i, one), (j, other) in itertools.product(enumerate(tree.leaves), repeat=2):
        depth = common_depth(tree, one, other)
        assert lca[i, j] == depth
        assert rho[i, j] == (1 if i == j else depth / longest)
        assert distance[i, j] == len(way_up(tree, one)) + len(way_up(tree, other)) - 2 - 2 * depth
    assert (distance == distance.T).all() and (np.diag(distance) == 0).all() and (rho == rho.T).all()


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_depths_and_ancestors_are_the_way_down(tree):
    for node in tree.nodes:
        down = tuple(reversed(way_up(tree, node)))
        assert tree.ancestors(node) == down and tree.ancestors(node, root=False) == down[1:]
        assert tree.depth_of(node) == len(down) - 1
        assert all(tree.parents[child] == node for child in tree.children(node))
    assert tree.leaves == tuple(sorted(node for node in tree.nodes if not tree.children(node)))


def test_a_leaf_that_ends_early_stands_for_itself_below():
    tree = TREES[1]
    assert tree.level(0) == ("root",) and tree.level(1) == ("a", "b", "c")
    assert tree.level(2) == ("aa", "ab", "ba", "bb", "c")
    assert tree.level(3) == tree.leaves == ("aaa", "aab", "ab", "ba", "bb", "c")
    assert tree.ancestor_codes(2).tolist() == [0, 0, 1, 2, 3, 4]
    assert tree.ancestor_codes(1).tolist() == [0, 0, 0, 1, 1, 2]
    assert tree.ancestor_codes(0).tolist() == [0] * 6 and tree.ancestor_codes(3).tolist() == list(range(6))


def test_cutting_keeps_what_stands_above_the_cut():
    tree = TREES[1]
    for level in (1, 2, 3):
        cut = tree.cut(level)
        assert cut.leaves == tree.level(level) and cut.depth == level
        assert all(cut.parents[node] == tree.parents[node] for node in cut.parents)
    assert tree.cut(1).is_flat and not tree.is_flat
    with pytest.raises(InputError, match="levels 1 to 3, not at 0"):
        tree.cut(0)


def test_what_is_kept_keeps_its_place():
    tree = TREES[1].keep(["aab", "c", "ba", "c"])
    assert tree.leaves == ("aab", "ba", "c") and tree.depth == 3
    assert all(tree.parents[node] == TREES[1].parents[node] for node in tree.parents)
    with pytest.raises(InputError, match="'a' stands for a group"):
        TREES[1].keep(["a", "c"])


def test_codes_are_places_among_the_sorted_leaves():
    labels = np.array(["ductal_carcinoma", "adenosis", "ductal_carcinoma"])
    codes = TREES[0].codes(labels)
    assert [TREES[0].leaves[code] for code in codes] == labels.tolist()
    assert TREES[0].codes([]).shape == (0,)


def test_an_unknown_label_is_refused_with_the_nearest_name():
    with pytest.raises(InputError, match=r"'ductal_carcinom'.*did you mean ductal_carcinoma"):
        TREES[0].codes(["adenosis", "ductal_carcinom"])
    with pytest.raises(InputError, match="'malignant' stands for a group"):
        TREES[0].codes(["malignant"])
    with pytest.raises(InputError, match="no node 'benin'; did you mean benign"):
        TREES[0].ancestors("benin")
    with pytest.raises(InputError, match="levels 0 to 2, not 3"):
        TREES[0].level(3)


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ({"a": "b", "b": "a"}, "a, b never reach a root: there is a circle"),
        ({"a": "a"}, "circle"),
        ({"x": "top", "y": "top", "a": "b", "b": "a"}, "a, b never reach a root"),
        ({"a": "one", "b": "two"}, r"2 roots \(one, two\)"),
        ({"a": "top", "b": "a"}, "one leaf only, b"),
        ({"": "top", "b": "top"}, "called ''"),
        ({}, "no classes"),
    ],
)
def test_what_is_no_tree_is_refused(parents, message):
    with pytest.raises(InputError, match=message):
        Taxonomy("mine", parents)


def test_a_tree_does_not_change_with_what_it_was_made_of():
    parents = {"a": "top", "b": "top"}
    tree = Taxonomy("mine", parents)
    parents["c"] = "a"
    assert tree.leaves == ("a", "b") and pickle.loads(pickle.dumps(tree)).leaves == ("a", "b")


@pytest.mark.parametrize(
    ("nested", "message"),
    [
        ({"a": ["x", "y"], "b": ["x"]}, r"'x' has 2 parents \(a, b\)"),
        ({"a": ["b"], "b": ["c"]}, "'b' has 2 parents"),
        ({"a": {"a": ["x"]}}, "'a' stands below itself"),
        ({"a": ["x", "x"]}, "'x' stands 2 times below 'a'; name it once"),
        ({"a": ["x", "x"], "b": ["x"]}, r"'x' has 2 parents \(a, b\)"),
        ({"a": ["root"]}, "called 'root', as the root is"),
        ({"a": "xy"}, "below 'a' stands 'xy'"),
        ({}, "no classes"),
    ],
)
def test_a_name_stands_at_one_place_only(nested, message):
    with pytest.raises(InputError, match=message):
        from_nested("mine", nested)


@pytest.mark.parametrize("empty", [[], {}, ""])
def test_a_group_without_classes_is_no_class(empty):
    with pytest.raises(InputError, match="mine: the group 'g' has no classes"):
        from_nested("mine", {"g": empty, "h": ["x", "y"]})


@pytest.mark.parametrize("item", [None, float("nan"), "", " ", {}, ["x"], 1])
def test_what_is_no_name_is_no_class(item):
    with pytest.raises(InputError, match=r"below 'g' stands .* where a name belongs"):
        from_nested("mine", {"g": ["a", item]})


def test_lists_may_hold_groups_beside_classes():
    tree = from_nested("skin", ["df", {"melanocytic": ["nv", "mel"]}], root="lesion")
    assert tree.leaves == ("df", "mel", "nv") and tree.root == "lesion" and tree.depth_of("df") == 1


def test_equal_names_below_different_groups_are_different_nodes():
    tree = from_paths("mine", ["colon/other", "breast/other", "breast/other", "breast/tumour/solid"])
    assert tree.leaves == ("breast/other", "breast/tumour/solid", "colon/other")
    assert tree.parents["breast/tumour/solid"] == "breast/tumour" and tree.depth == 3
    assert from_paths("mine", ["a>b", "a>c"], ">").level(1) == ("a",)


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (["a", "a/b", "c"], "'a' is a class and a group of classes at once"),
        (["a//b", "c"], "empty part"),
        (["a/", "c"], "empty part"),
        (["a", "a"], "one leaf only"),
        ([], "no classes"),
        (["root/a", "root/b"], "mine: a class is called 'root', as the root is"),
        ("colon/a", r"the labels have to be a list, not the text 'colon/a'; write \['colon/a'\]"),
        (["colon/a", "colon /b"], "'colon /b' has a blank before or after a name; write 'colon/b'"),
        (["colon/a", "colon/ a"], "'colon/ a' has a blank"),
        (["a", "b", None], "the label in row 2 is None, which is no text"),
        (["a", float("nan"), "b"], "the label in row 1 is nan, which is no text"),
        ([3, 4], "the label in row 0 is 3, which is no text"),
    ],
)
def test_class_names_that_make_no_tree_are_refused(paths, message):
    with pytest.raises(InputError, match=message):
        from_paths("mine", paths)


def test_a_file_is_read_as_text_throughout(tmp_path):
    file = tmp_path / "grades.yaml"
    file.write_text("root: breast\ntree:\n  no: [1, 2.0]\n  yes: {1e5: , 2024-01-01: null}\n", encoding="utf-8")
    tree = from_yaml(file)
    assert tree.name == "grades" and tree.root == "breast"
    assert tree.leaves == ("1", "1e5", "2.0", "2024-01-01") and tree.level(1) == ("no", "yes")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tree: {a: [x],\n a: [y]}", r"mine\.yaml, line 2: 'a' is named twice; name it once"),
        ("tree: &all {a: *all}", r"mine\.yaml, line 1: the alias \*all means nothing here; write out"),
        ("tree:\n  a: &b [x]\n  c: {<<: *b}", r"line 3: the alias \*b means nothing"),
        ("tree:\n  a: [x]\n  <<: {c: [y]}", "line 3: the merge key << means nothing here"),
        ("tree: {a: [!!int abc, c], b: [d]}", r"line 1: the tag tag:yaml.org,2002:int means nothing"),
        ("tree: {a: [!!python/object/apply:os.system [ls]]}", "the tag tag:yaml.org,2002:python"),
        ("name: !mine x\ntree: [a, b]", "the tag !mine means nothing"),
        ("tree: " + 2000 * "[", r"mine\.yaml: its groups are nested hundreds deep"),
        ("tree:\n  a:\n  - x\n  -", "below 'a' stands None where a name belongs"),
        ("tree: {~: [x, y]}", "below 'root' stands None where a name belongs"),
        ("tree: [a", "is not YAML"),
        ("[a, b]", "needs 'tree:'"),
        ("tree: [a, b]\nlevels: 3", "'levels' means nothing here"),
    ],
)
def test_a_file_that_holds_no_tree_is_named(tmp_path, text, message):
    file = tmp_path / "mine.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        from_yaml(file)
    assert "mine" in str(caught.value)


def test_groups_nested_without_an_end_are_refused():
    deep = ["a", "b"]
    for n in range(3000):
        deep = {f"group {n}": deep}
    with pytest.raises(InputError, match="mine: its groups are nested hundreds deep"):
        from_nested("mine", deep)


COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"


@pytest.mark.parametrize(
    "build",
    [
        lambda: from_nested("mine", {DECOMPOSED: [f"{DECOMPOSED} x ", "y"]}),
        lambda: from_paths("mine", [f"{DECOMPOSED} x", f"{COMPOSED} x", "y "]),
        lambda: from_dag("mine", {f"{DECOMPOSED} x": ["top"], "y": ["top"]}, {f"{COMPOSED} x": 3}),
    ],
    ids=["nested", "paths", "dag"],
)
def test_names_are_those_of_a_table_of_images(build):
    """A file written on one system, labels from another: two Unicode forms, and blanks at the ends."""
    tree = build()
    assert tree.leaves == (f"{COMPOSED} x", "y")
    assert tree.codes([f"{DECOMPOSED} x", f"{COMPOSED} x", " y"]).tolist() == [0, 0, 1]
    assert tree.depth_of(f"{DECOMPOSED} x") == tree.depth


@pytest.mark.parametrize(
    "build",
    [
        lambda: from_nested("mine", {"a": ["mel", "x"], "b": ["mel ", "y"]}),
        lambda: from_nested("mine", [COMPOSED, DECOMPOSED]),
        lambda: from_dag("mine", {"mel": ["top"], "mel ": ["top"]}, {}),
        lambda: Taxonomy("mine", {"mel": "top", "mel ": "top"}),
    ],
)
def test_one_name_in_two_spellings_is_refused(build):
    with pytest.raises(InputError, match=r"mine: .* are two spellings of one name"):
        build()


@pytest.mark.parametrize("codes", [[-1], [0, 6], [[2, -1]], [0.0], [True]])
def test_codes_of_no_leaf_have_no_shared_depth(codes):
    with pytest.raises(InputError, match="the leaves"):
        TREES[1].shared_depth(codes, 0)
    with pytest.raises(InputError, match="the leaves"):
        TREES[1].shared_depth(0, codes)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: from_nested("m", ["None", "nan"]).codes(["None", None]), "row 1 has no label"),
        (lambda: TREES[1].keep([float("nan"), "c"]), "row 0 has no label"),
        (lambda: TREES[1].level("1"), "level = '1'"),
        (lambda: TREES[1].cut(1.5), "level = 1.5"),
        (lambda: from_paths("m", 5), "labels have to be a list, not 5"),
        (lambda: from_paths("m", ["a", "b"], ""), "separator is empty"),
        (lambda: from_dag("m", {"a": None}, {}), "the parents of 'a' have to be a list, not None"),
        (lambda: from_dag("m", {"a": ["top"], "b": ["top"]}, {"a": "3"}), "images of 'a' = '3'"),
        (lambda: from_dag("m", {"a": ["top"], "b": ["top"]}, ["a"]), r"counts = \['a'\].* a dictionary"),
        (lambda: from_dag("m", {"a": ["top"], "b": ["top"]}, {1: 1}), "a node is called 1"),
        (lambda: from_dag("m", {"a": ["top"], "b": ["top"]}, {"a": 1, "a ": 2}), "two spellings of one name"),
        (lambda: from_dag("m", [("a", "top")], {}), "parents = .* a dictionary"),
        (lambda: from_dag("m", {1: ["top"], "b": ["top"]}, {}), "a node is called 1"),
        (lambda: Taxonomy("m", 5), "parents = 5 .* a dictionary"),
        (lambda: TREES[1].keep("c"), r"the leaves have to be a list, not the text 'c'; write \['c'\]"),
    ],
)
def test_what_has_no_meaning_is_refused_in_words(call, words):
    with pytest.raises(InputError, match=words):
        call()


GRAPH = {"near": ["eye"], "far": ["middle"], "middle": ["eye"], "other": ["eye"], "p": ["near"], "q": ["other"]}
TWO_WAYS = {"a": ["eye"], "b": ["eye"], "a1": ["a"], "a2": ["a"], "shared": ["a1", "a2"], "rest": ["b"]}


@pytest.mark.parametrize(
    ("graph", "counts", "parent"),
    [
        (GRAPH | {"x": ["far", "near"], "f": ["far"]}, {"f": 100, "x": 1}, "near"),  # the nearest to the root
        (GRAPH | {"x": ["near", "other"], "f": ["far"]}, {"p": 3, "q": 4}, "other"),  # as near: more images below
        (GRAPH | {"x": iter(["near", "other"]), "f": ["far"]}, pd.Series({"p": 4, "q": 3}), "near"),
        (GRAPH | {"x": ["other", "near"], "f": ["far"]}, {"p": 3, "q": 3, "x": 9}, "near"),  # as many: by name
        (TWO_WAYS | {"x": ["a", "b"], "y1": ["a1"], "y2": ["a2"]}, {"shared": 3, "rest": 5}, "b"),  # count once
    ],
)
def test_of_several_parents_one_stays(graph, counts, parent):
    assert from_dag("odir", graph, counts).parents["x"] == parent


def test_a_group_that_loses_all_its_classes_is_no_class():
    graph = {"near": ["eye"], "deep": ["eye"], "deeper": ["deep"], "x": ["near", "deeper"], "y": ["near"]}
    tree = from_dag("odir", graph, {})
    assert tree.leaves == ("x", "y") and "deep" not in tree.nodes


@pytest.mark.parametrize(
    ("graph", "counts", "message"),
    [
        ({"a": ["eye"], "b": ["eye"]}, {"c": 1}, "counted for 'c', which is not in it"),
        ({"a": ["eye"], "x": ["a"], "y": ["a"]}, {"a": 1}, "'a', which stands for a group"),
        ({"a": ["one"], "b": ["two"]}, {}, "2 roots"),
        ({"a": ["b"], "b": ["a"]}, {}, "circle"),
        ({"a": "eye", "b": ["eye"]}, {}, r"the parents of 'a' have to be a list, not the text 'eye'; write \['eye'\]"),
        ({"x": ["eye"], "a": ["b"], "b": ["a"]}, {}, "a, b never reach the root eye"),
    ],
)
def test_a_graph_that_makes_no_tree_is_refused(graph, counts, message):
    with pytest.raises(InputError, match=message):
        from_dag("odir", graph, counts)


def test_a_graph_that_is_a_tree_stays_as_it_is():
    tree = TREES[1]
    again = from_dag("uneven", {node: [parent] for node, parent in tree.parents.items()}, {"c": 2})
    assert again.parents == tree.parents
