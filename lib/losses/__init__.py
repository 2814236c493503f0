"""One module per paper. A loss knows embeddings, labels and a geometry, and nothing of files or training.

Every loss is an object with its settings, and is called in one way::

    loss(embeddings, labels, *, ...)

embeddings: (..., B, d), points of the loss's geometry, or codes before their sign. labels: (..., B) whole numbers from
0 on. Leading dimensions are independent batches, and the result has their shape; a loss of a label tree takes a single
batch (B, d). Rows may stand in any order. What a loss needs besides is a keyword:

* valid: (..., B) bool, which rows count; the others only fill up batches of unequal size. All if not given.
* prints: (..., B, p) fingerprints of the images, where ``looks`` is set.
* images: (B,) which rows are views of one image. SimCLR needs it; other losses of a tree accept it.

==========================  ======================================================  ==========================
module                      loss                                                    keywords
==========================  ======================================================  ==========================
hyper_dino                  ContrastiveLoss(geometry, m0, alpha, norm_weight)       valid
hyp_vit                     PairwiseCrossEntropy(geometry, temperature, samples)    valid
acir                        StructureAware(alpha, quantisation, likeness, looks)    valid, prints
hashing, centres            CSQ(n_classes, bits), DPN(n_classes, bits)              valid
hashing, pairs              DCH(gamma), DBDH(), DSDH(), QSMIH(), Triplet(margin)    valid
linear_prototypes           EpisodeLoss(k, n_classes, comparison, temperature)      valid
label_tree, views           SimCLR(tree, geometry, temperature)                     images
label_tree, pairs           SupCon, OutsideSoftmax, HierarchyWeighted: the same     images
label_tree, classifier      HierarchicalCrossEntropy(tree, dim, geometry)           images
label_tree, both            Sum(pairs, margin, weight)                              images
level_margin                LevelAwareMargin(tree, dim, geometry)                   images
==========================  ======================================================  ==========================

``samples`` rows of each class make a batch of ``hyp_vit``; the first ``k`` rows of each class are the support of an
episode. ContrastiveLoss and StructureAware have ``parts``, called alike, for their terms. :mod:`lib.losses.dino` has no
labels: it compares the logits of a student with those of its teacher.
"""
